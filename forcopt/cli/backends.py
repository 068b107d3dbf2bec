"""``forcopt backends``: the solvers on this machine, and their capabilities."""

from __future__ import annotations

from forcopt.cli.output import JsonOption, console, print_json, print_table, table

__all__ = ["backends"]


def backends(as_json: JsonOption = False) -> None:
    """List the backends: capabilities, version, and how to install missing ones."""
    from forcopt.backends import registry

    rows = []
    for name, backend in registry.backends().items():
        lack = backend.missing()
        rows.append(
            {
                "backend": name,
                "through": backend.through,
                "takes": backend.capabilities.describe(),
                "version": None if lack else backend.version(),
                "missing": lack,
                "install": backend.install,
            }
        )
    if as_json:
        return print_json(rows)
    out = table("backend", "through", "takes", "version")
    for row in rows:
        here = row["version"] or f"{row['missing']}; install it with: {row['install']}"
        out.add_row(row["backend"], row["through"], row["takes"], here, style="dim" if row["missing"] else "")
    print_table(out)
    for prefix, found in registry.families().items():
        console().print(
            f"{prefix}:NAME is any solver that {prefix} finds; here: {', '.join(found) or 'none'}",
            markup=False,
        )
    return None
