"""``python -m capmodel``."""

from .cli import main

main()
