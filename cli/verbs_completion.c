/* biga completion: scripts for shells, each of which asks `biga __complete`. */
#include <string.h>

#include "cli/base/say.h"
#include "cli/verbs.h"
#include "lib/base/mem.h"

/* What is completed is the word up to the cursor, as people see it; readline
 * begins one behind each ":" and "=", so that what stands before is cut off. */
static const char bash[] =
    "# biga completion bash: source it, or install it as\n"
    "# /usr/share/bash-completion/completions/biga\n"
    "_biga()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} word cut='' breaks i\n"
    "    local -a words out\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    word=${words[-1]} breaks=${COMP_WORDBREAKS//[!:=]/}\n"
    "    [[ $breaks ]] && cut=${word%\"${word##*[$breaks]}\"}\n"
    "    mapfile -t out < <(\"${words[0]/#\\~/$HOME}\" __complete \\\n"
    "        \"${words[@]:1}\" 2>/dev/null)\n"
    "    COMPREPLY=()\n"
    "    [[ ${#out[@]} -gt 0 ]] || return\n"
    "    [[ ${out[-1]} == :files ]] && compopt -o default\n"
    "    unset 'out[-1]'\n"
    "    for i in \"${out[@]}\"; do\n"
    "        i=${i%%$'\\t'*}\n"
    "        COMPREPLY+=(\"${i#\"$cut\"}\")\n"
    "    done\n"
    "}\n"
    "complete -F _biga biga\n";

static const char zsh[] =
    "#compdef biga\n"
    "# biga completion zsh: install it as _biga in a folder of $fpath, or\n"
    "# source it behind compinit\n"
    "_biga()\n"
    "{\n"
    "    local line name\n"
    "    local -a out found\n"
    "    out=(\"${(@f)$(${(Q)words[1]} __complete \\\n"
    "        \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)}\")\n"
    "    for line in ${out[1,-2]}; do\n"
    "        name=${line%%$'\\t'*}\n"
    "        found+=(\"${name//:/\\\\:}:${${line#$name}#$'\\t'}\")\n"
    "    done\n"
    "    if [[ ${out[-1]} == :files ]]; then\n"
    "        _files\n"
    "    else\n"
    "        _describe -V biga found\n"
    "    fi\n"
    "}\n"
    "if [[ ${funcstack[1]} == _biga ]]; then\n"
    "    _biga \"$@\"\n"
    "else\n"
    "    compdef _biga biga\n"
    "fi\n";

static const char fish[] =
    "# biga completion fish: source it, or install it as biga.fish in\n"
    "# /usr/share/fish/vendor_completions.d\n"
    "function __biga_complete\n"
    "    set -l begun (commandline -ct)\n"
    "    set -l words (commandline -opc) \"$begun\"\n"
    "    set -l out (command $words[1] __complete $words[2..-1] 2>/dev/null)\n"
    "    if test \"$out[-1]\" = :files\n"
    "        __fish_complete_path \"$begun\"\n"
    "    else if test (count $out) -gt 1\n"
    "        printf '%s\\n' $out[1..-2]\n"
    "    end\n"
    "end\n"
    "complete -c biga -f -k -a '(__biga_complete)'\n";

int verb_completion(struct cli *c, int argc, char **argv)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    (void)argc;
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
        if (strcmp(scripts[i].shell, argv[0]) == 0) {
            str_add(&c->out, scripts[i].script);
            return 0;
        }
    static const char *const shells[] = {"bash", "zsh", "fish", NULL};
    return cli_usage_word("completion", argv[0], shells);
}
