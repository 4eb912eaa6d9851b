"""The service for an ASGI server: `uvicorn --app-dir service asgi:app`; settings from CONTAM_*."""

from contam.config import load_settings
from contam.server import logs
from contam.server.app import create_app

settings = load_settings()
# Another server's own lines would tell paths and queries as they were asked.
logs.configure(settings.log_level)
app = create_app(settings)
