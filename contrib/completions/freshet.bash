# bash completion for freshet(1)                                     -*- shell-script -*-

# Cgroups below the cgroup2 mount that begin with what is typed, with the slash it has or not.
_freshet_paths()
{
	local mount lead="" typed=$1 dir IFS=$'\n'

	mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
	[[ $mount ]] || return
	[[ $typed == /* ]] && lead=/
	typed=${typed#/}
	COMPREPLY=()
	for dir in $(compgen -d -- "$mount/$typed"); do
		COMPREPLY+=("$lead${dir#"$mount"/}")
	done
	compopt -o filenames -o nospace 2>/dev/null
}

# Names in the directories where segments live.
_freshet_segments()
{
	local own=${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/freshet}

	command ls -- "${own:-/tmp/freshet-$UID}" /run/freshet 2>/dev/null |
		command grep -Ev '^$|:$|\.(lock|sock|new)$'
}

_freshet()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options=""

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "serve ls show top doctor --help --version" -- "$cur"))
		return
	fi
	case $prev in
	--segment)
		COMPREPLY=($(compgen -W "$(_freshet_segments)" -- "$cur"))
		return ;;
	--segment-dirs)
		COMPREPLY=($(compgen -d -- "$cur"))
		return ;;
	--sort)
		[[ " ${COMP_WORDS[*]} " == *" --segment "* ]] ||
			COMPREPLY=($(compgen -W "cpu user system throttled time name" -- "$cur"))
		return ;;
	--source)
		COMPREPLY=($(compgen -W "auto bpf files" -- "$cur"))
		return ;;
	--root | --config)
		COMPREPLY=($(compgen -f -- "$cur"))
		return ;;
	--depth | --max-age | --delay | --filter | --interval | --listen | --max-groups | --max-cpu | -n)
		return ;;
	esac
	case ${COMP_WORDS[1]} in
	serve) options="--root --source --interval --listen --segment --segment-dirs --max-groups --max-cpu --config --help" ;;
	ls) options="--depth --segment --segments --json --help" ;;
	show) options="--max-age --segment --json --help" ;;
	top) options="--delay --sort --filter --segment --batch -n --help" ;;
	doctor) options="--json --help" ;;
	*) return ;;
	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$options" -- "$cur"))
	elif [[ ${COMP_WORDS[1]} == @(ls|show|top) ]]; then
		_freshet_paths "$cur"
	fi
}

complete -F _freshet freshet
