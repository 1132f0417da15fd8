# Read by the operator's bash when it starts, after lines that set __pilothouse_root, _place and _venv.
# It gives the prompt of a sandbox session, and notes at each prompt and at the end where the shell stands and
# which variables were set: by name, never by value, for a value may have been typed with echo off.

VIRTUAL_ENV_DISABLE_PROMPT=1
[[ ! -f $__pilothouse_venv/bin/activate ]] || source "$__pilothouse_venv/bin/activate"
unset HISTFILE # bash itself would save what was typed with echo off as well
HISTCONTROL=ignorespace
__pilothouse_hidden= __pilothouse_begun=
declare -A __pilothouse_before=()

__pilothouse_note() {
    { local - && set +eux; } 2>/dev/null
    local __pilothouse_name __pilothouse_value __pilothouse_names __pilothouse_said=()
    local -A __pilothouse_seen=()
    [[ -z $__pilothouse_hidden ]] || history -d -1 2>/dev/null
    __pilothouse_hidden=
    history -a "$__pilothouse_place/history"
    mapfile -t __pilothouse_names < <(compgen -v)
    for __pilothouse_name in "${__pilothouse_names[@]}"; do
        case $__pilothouse_name in
        __pilothouse* | _ | BASH* | COMP_* | DIRSTACK | FUNCNAME | MAPFILE | PIPESTATUS | RANDOM | SRANDOM | \
            SECONDS | EPOCH* | LINENO | HIST* | OPT* | PWD | OLDPWD | COLUMNS | LINES | PS[0124] | \
            PROMPT_COMMAND | VIRTUAL_ENV* | _OLD_VIRTUAL_*) continue ;;
        esac
        __pilothouse_seen[$__pilothouse_name]=1
        __pilothouse_value=${!__pilothouse_name@a}=${!__pilothouse_name-}
        __pilothouse_value=${__pilothouse_value//"${VIRTUAL_ENV:-/}/bin:"/}
        if [[ -z $__pilothouse_begun ]]; then
            __pilothouse_before[$__pilothouse_name]=$__pilothouse_value
        elif [[ ! -v __pilothouse_before[$__pilothouse_name] ]]; then
            __pilothouse_said+=("+$__pilothouse_name")
        elif [[ ${__pilothouse_before[$__pilothouse_name]} != "$__pilothouse_value" ]]; then
            __pilothouse_said+=("*$__pilothouse_name")
        fi
    done
    for __pilothouse_name in "${!__pilothouse_before[@]}"; do
        [[ -v __pilothouse_seen[$__pilothouse_name] ]] || __pilothouse_said+=("-$__pilothouse_name")
    done
    __pilothouse_begun=1
    printf '%s\0' "$PWD" "${VIRTUAL_ENV-}" "${__pilothouse_said[@]}" >|"$__pilothouse_place/notes"
}

__pilothouse_prompt() {
    { local - && set +eux; } 2>/dev/null
    __pilothouse_note
    __pilothouse_where=$PWD
    case $PWD/ in "$__pilothouse_root"/*) __pilothouse_where=.${PWD#"$__pilothouse_root"} ;; esac
    [[ $__pilothouse_where != . ]] || __pilothouse_where=./
    __pilothouse_where="${VIRTUAL_ENV:+(${VIRTUAL_ENV##*/}) }$__pilothouse_where"
    __pilothouse_where=${__pilothouse_where//[[:cntrl:]]/?}
    [[ " $(stty -a 2>/dev/null) " != *' -echo '* ]] || __pilothouse_hidden=1
}

PROMPT_COMMAND=__pilothouse_prompt
PS1='$__pilothouse_where $ '
trap __pilothouse_note EXIT
