// SPDX-License-Identifier: Apache-2.0
// hekla completion: prints a short script per shell that calls 'hekla __complete'.
#include "cli/command.h"
#include "cli/verb.h"

enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH };

struct completion_opts {
    enum shell shell;
    bool given;
};

/* bash splits a word at '=', and shows candidates as they are: the script cuts the description. */
static const char bash_script[] =
    "_hekla() {\n"
    "    local line cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    COMPREPLY=()\n"
    "    [ \"$cur\" != = ] || cur=\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "
    "\"$cur\") ;;\n"
    "        :dirs) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "
    "\"$cur\") ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:0:COMP_CWORD+1}\" 2>/dev/null "
    "</dev/null)\n"
    "}\n"
    "complete -F _hekla";

static const char zsh_script[] =
    "_hekla() {\n"
    "    local line\n"
    "    local -a answers\n"
    "    for line in ${(f)\"$($words[1] __complete \"${(@)words[1,CURRENT]}\" 2>/dev/null "
    "</dev/null)\"}; do\n"
    "        case $line in\n"
    "        :files) [[ $PREFIX != -* ]] || compset -P '*='; _files ;;\n"
    "        :dirs) [[ $PREFIX != -* ]] || compset -P '*='; _files -/ ;;\n"
    "        *) answers+=(\"${${line//:/\\\\:}/$'\\t'/:}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#answers == 0 )) || _describe '' answers\n"
    "}\n"
    "compdef _hekla";

static const char fish_script[] =
    "function __hekla_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] __complete $words 2>/dev/null </dev/null)\n"
    "        switch $line\n"
    "            case :files\n"
    "                __fish_complete_path (commandline -ct)\n"
    "            case :dirs\n"
    "                __fish_complete_directories (commandline -ct)\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "for name in";

static void write_programs(struct hk_buf *out)
{
    hk_buf_adds(out, " hekla");
    for (uint32_t i = 0; command_program_at(i); i++) {
        hk_buf_addf(out, " %s", command_program_at(i)->name);
    }
    hk_buf_adds(out, " vc-scheduler vc-controller-manager vc-webhook-manager\n");
}

static void write_script(enum shell shell, struct hk_buf *out)
{
    switch (shell) {
    case SHELL_BASH:
        hk_buf_adds(out, bash_script);
        write_programs(out);
        break;
    case SHELL_ZSH:
        hk_buf_adds(out, "#compdef");
        write_programs(out);
        hk_buf_adds(out, zsh_script);
        write_programs(out);
        /* When zsh autoloads the script as a function, the first completion must run here, too. */
        hk_buf_adds(out, "[ \"$funcstack[1]\" != _hekla ] || _hekla\n");
        break;
    case SHELL_FISH:
        hk_buf_adds(out, fish_script);
        write_programs(out);
        hk_buf_adds(out, "    complete -c $name -f -a '(__hekla_complete)'\nend\n");
        break;
    }
}

static int completion_parse_shell(void *at, const struct option_row *row, const char *value,
                                  struct hk_err *err)
{
    struct completion_opts *o = at;
    struct hk_str rest = hk_str(row->choices), word;

    if (o->given) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
    }
    for (int shell = SHELL_BASH; hk_str_cut(&rest, ' ', &word); shell++) {
        if (hk_str_is(word, value)) {
            *o = (struct completion_opts){(enum shell)shell, true};
            return 0;
        }
    }
    return hk_fail(err, HK_EINVAL, "shell is '%s', want one of: bash, zsh, fish", value);
}

static const struct option_row options[] = {
    {.type = OPTION_ARGUMENTS,
     .arg = "SHELL",
     .choices = "bash zsh fish",
     .call = completion_parse_shell},
    ROW_END,
};

static int completion_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct completion_opts o = {0};
    const int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!o.given) {
        return verb_complain("completion: the shell is missing: bash, zsh or fish");
    }
    write_script(o.shell, &out);
    return verb_print(&out);
}

const struct verb verb_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .about = "print a completion script for a shell",
    .options = options,
    .text = "Prints a script that lets the shell complete verbs, options and their values for this "
            "program, vcctl, its short forms and the servers. While a server answers, the names of "
            "jobs, pods, queues, nodes and namespaces are completed too. 'make install' installs "
            "the scripts.",
    .rest = "EXAMPLES\n"
            "       bash:  source <(hekla completion bash)\n"
            "       zsh:   hekla completion zsh >\"${fpath[1]}/_hekla\"\n"
            "       fish:  hekla completion fish | source\n",
    .run = completion_run,
};
