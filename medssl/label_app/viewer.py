"""What the OHIF that comes with MONAI Label 0.8.5 needs from its server to do what it seems to do.

It asks for a random next sample whatever strategy is chosen, expects the server on port 8000, loads fonts from another
site, and MONAI Label forgets what it searches the archive for, so that it lists everybody's studies as one patient's.
"""

import json
import re
from http.cookies import SimpleCookie
from typing import Literal
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import Response
from monailabel.config import settings
from monailabel.endpoints.proxy import proxy_dicom
from monailabel.endpoints.user.auth import RBAC, User
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGES = "/ohif/"
ONLY_THIS_SERVER = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'"

_STORE = re.compile(r"(?:(?:wado|stow)/)?(studies(?:/[0-9.]{1,64})?)")
_TOLD = (b"content-length", b"content-type")
_FAILURES = ("00081198", "0008119A")  # FailedSOPSequence and OtherFailuresSequence

archive_access = APIRouter()


class ViewerMiddleware:
    """Answers OHIF's wish for a random sample by `strategy`; sends its pages with this address, and for this site only.

    Programs that ask for a random sample get one. With sign-on, pages may go to other sites, as it needs them.
    """

    def __init__(self, app: ASGIApp, strategy: str) -> None:
        self.app, self.strategy = app, strategy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        if scope["path"] == "/activelearning/random" and urlsplit(headers.get("referer", "")).path.startswith(PAGES):
            path = f"/activelearning/{self.strategy}"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        if not scope["path"].startswith(PAGES):
            return await self.app(scope, receive, send)

        async def send_page(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer.append("set-cookie", _address_cookie(f"{scope['scheme']}://{headers.get('host', '')}/"))
                if not settings.MONAI_LABEL_AUTH_ENABLE:
                    answer["content-security-policy"] = ONLY_THIS_SERVER
            await send(message)

        return await self.app(scope, receive, send_page)


def _address_cookie(address: str) -> str:
    """The cookie in which OHIF keeps the address of the label server; cookies do not tell ports apart."""
    cookie: SimpleCookie = SimpleCookie()
    cookie["MONAILABEL_SERVER_URL"] = quote(address, safe="")
    cookie["MONAILABEL_SERVER_URL"].update({"path": PAGES.rstrip("/"), "samesite": "Strict"})
    return cookie["MONAILABEL_SERVER_URL"].OutputString()


@archive_access.get("/proxy/dicom/{kind}/{path:path}", include_in_schema=False)
async def ask_archive(
    request: Request,
    kind: Literal["qido", "wado"],
    path: str,
    user: User = Depends(RBAC(settings.MONAI_LABEL_AUTH_ROLE_USER)),  # noqa: B008
) -> Response:
    """What the archive answers, with all that is searched for."""
    return await proxy_dicom(request, kind, f"{path}?{request.url.query}" if request.url.query else path)


@archive_access.post("/proxy/dicom/{path:path}", include_in_schema=False)
async def store_in_archive(
    request: Request,
    path: str,
    user: User = Depends(RBAC(settings.MONAI_LABEL_AUTH_ROLE_ANNOTATOR)),  # noqa: B008
) -> Response:
    """What the archive answers to DICOM files that are sent to be stored; nothing else is posted to it.

    OHIF sends them to the address it reads from. The archive gets no header that was meant for this server. Where it
    says in a successful answer that it has not taken a file, the status is 409: OHIF looks at nothing else.
    """
    place = _STORE.fullmatch(path)
    if place is None or not request.headers.get("content-type", "").startswith("multipart/related"):
        raise HTTPException(403, "only DICOM files to be stored (STOW-RS) are sent on to the archive")
    told = [(name, value) for name, value in request.scope["headers"] if name in _TOLD]
    told += [(b"accept", b"application/dicom+json"), (b"accept-encoding", b"identity")]  # to be read here, too
    answer = await proxy_dicom(Request({**request.scope, "headers": told}, request.receive), "stow", place[1])
    if answer.status_code < 400 and _names_failures(answer.body):
        answer.status_code = 409
    return answer


def _names_failures(answer: bytes | memoryview) -> bool:
    """Whether the archive's answer to STOW-RS names a file that it has not stored."""
    try:
        told = json.loads(bytes(answer))
    except ValueError:
        return False
    parts = told if isinstance(told, list) else [told]
    return any(part.get(name, {}).get("Value") for part in parts if isinstance(part, dict) for name in _FAILURES)
