"""The command `meltpoint`: one thin file per command, and the only place that prints."""


def main() -> None:
    """Run the command."""
    from meltpoint.cli.app import app

    app(prog_name="meltpoint")
