"""The service for an ASGI server: `uvicorn --app-dir service asgi:app`; settings from CONTAM_*."""

from contam.config import load_settings
from contam.server.app import create_app

app = create_app(load_settings())
