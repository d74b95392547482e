"""``fastmix key``: a pair of Ed25519 keys with which an institution signs its fits."""

from pathlib import Path
from typing import Annotated

import typer

from fastmix.certificate.signing import new_keys, write_secret
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text

EXAMPLES = ("fastmix key institution",)


def command(
    name: Annotated[
        Path, typer.Argument(help="Name of the pair: NAME.key is secret, NAME.pub is public.")
    ],
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase that encrypts NAME.key.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Make a pair of keys: sign fits with NAME.key, and publish NAME.pub."""
    secret, public = (name.with_name(f"{name.name}{end}") for end in (".key", ".pub"))
    for file in (secret, public):
        if file.exists():
            raise ValueError(
                f"The file {str(file)!r} already exists, and a key is never replaced. Choose "
                "another name."
            )
    phrase = None
    if passphrase:
        phrase = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True)
    made, shown, fingerprint = new_keys(phrase)
    write_secret(secret, made)
    public.write_bytes(shown)
    if json:
        print_json({"private": str(secret), "public": str(public), "fingerprint": fingerprint})
        return
    print_text(
        f"Wrote {secret} (keep it secret) and {public} (publish it).",
        f"Fingerprint: {fingerprint}",
        "",
        f"  fastmix fit ... --sign {secret}",
        f"  fastmix explain model --verify --key {public}",
    )
