"""The pages, figures and tables of runs on natural images; medssl finds them by the tasks in tasks.py."""
