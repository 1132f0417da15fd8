# Read by the operator's shell where there is no bash; see shell.bash. It notes where it stands, and no more.

[ ! -f "$__pilothouse_venv/bin/activate" ] || . "$__pilothouse_venv/bin/activate"
__pilothouse_note() {
    printf '%s\0' "$PWD" "${VIRTUAL_ENV-}" >"$__pilothouse_place/new"
    mv "$__pilothouse_place/new" "$__pilothouse_place/notes"
}
trap __pilothouse_note EXIT
PS1='$(__pilothouse_note)$PWD $ '
