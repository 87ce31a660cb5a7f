"""MONAI Label's endpoints as a web application of our own: checked at the edge, and without those nobody needs here.

Left out are the upload and removal of models, pathology, and `/reload`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import monailabel.endpoints
from fastapi import Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from monailabel.config import settings
from monailabel.endpoints import (
    activelearning,
    batch_infer,
    datastore,
    infer,
    info,
    login,
    logs,
    ohif,
    proxy,
    scoring,
    session,
    train,
)
from monailabel.endpoints.user.auth import RBAC
from monailabel.interfaces.utils.app import app_instance
from starlette.middleware.trustedhost import TrustedHostMiddleware

from medssl.label_app.app import this_is_the_server
from medssl.label_app.background import guard_tasks
from medssl.label_app.edge import EXPLAINED, check_request, explain
from medssl.label_app.result_files import removing_segmentations, segmentation_file
from medssl.label_app.series import SeriesDatastore
from medssl.label_app.viewer import ViewerMiddleware, archive_access
from medssl.label_app.viewer_export import export_routes
from medssl.label_app.workspace import is_address

_ROUTERS = (info, batch_infer, train, activelearning, scoring, datastore, logs, ohif, session)


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    app = app_instance()
    app.server_mode(True)
    app.on_init_complete()
    yield
    app.on_shutdown()


def build(hosts: list[str]) -> FastAPI:
    """The application, for requests that are addressed to one of `hosts` (["*"]: to any)."""
    this_is_the_server()
    guard_tasks(train, scoring)
    infer.nifti_to_dicom_seg, infer.DICOMWebDatastore = segmentation_file, SeriesDatastore
    infer.send_response = removing_segmentations(infer.send_response)
    app = FastAPI(
        title="medssl label",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        dependencies=[Depends(check_request)],
    )
    origins = [str(origin).rstrip("/") for origin in settings.MONAI_LABEL_CORS_ORIGINS]
    app.state.origins = {urlsplit(origin).netloc for origin in origins}
    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
    app.add_middleware(ViewerMiddleware, strategy=settings.MONAI_LABEL_APP_CONF.get("strategy", "uncertain"))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    for kind in EXPLAINED:
        app.add_exception_handler(kind, explain)
    static = Path(monailabel.endpoints.__file__).parent / "static"
    if is_address(settings.MONAI_LABEL_STUDIES):
        app.include_router(export_routes(static / "ohif"))  # before OHIF's own
    for part in _ROUTERS:
        app.include_router(part.router)
    # not its own route, which would keep all other requests waiting for the prediction
    users = [Depends(RBAC(settings.MONAI_LABEL_AUTH_ROLE_USER))]
    app.add_api_route("/infer/{model}", infer.run_inference, methods=["POST"], dependencies=users)
    if settings.MONAI_LABEL_AUTH_ENABLE:
        app.include_router(login.router)
    if is_address(settings.MONAI_LABEL_STUDIES):
        app.include_router(archive_access)
        app.include_router(proxy.router)
    app.mount("/static", StaticFiles(directory=static), name="static")
    app.add_api_route("/", _front_page, include_in_schema=False)
    return app


def _front_page() -> RedirectResponse:
    return RedirectResponse("/ohif/" if is_address(settings.MONAI_LABEL_STUDIES) else "/info/")
