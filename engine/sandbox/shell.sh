# Read by the operator's shell where there is no bash; see shell.bash. It notes only where it stands at its end.

[ ! -f "$__pilothouse_venv/bin/activate" ] || . "$__pilothouse_venv/bin/activate"
trap 'printf "%s\0" "$PWD" "${VIRTUAL_ENV-}" >"$__pilothouse_place/notes"' EXIT
trap exit HUP
PS1='$PWD $ '
