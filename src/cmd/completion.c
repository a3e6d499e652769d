// SPDX-License-Identifier: Apache-2.0
// hekla completion: scripts for shells, made from the table of verbs.
#include "cli/command.h"
#include "cmd/verb.h"

struct shell {
    const char *name;
    void (*write)(struct hk_buf *out);
};

static void write_verbs(const char *sep, struct hk_buf *out)
{
    for (uint32_t k = 0; k < verb_table_len; k++) {
        hk_buf_addf(out, "%s%s", k > 0 ? sep : "", verb_table[k]->name);
    }
}

/* The words that may stand behind a command. */
static void write_subs(const struct command *c, struct hk_buf *out)
{
    for (uint32_t k = 0; k < c->nsubs; k++) {
        hk_buf_addf(out, "%s%s", k > 0 ? " " : "", c->subs[k].name);
    }
}

static const struct command *vcctl(void)
{
    return command_program(HK_STR("vcctl"));
}

/* ---- bash ---- */

/* The words of vcctl follow one another. */
static void write_bash_vcctl(const struct command *c, struct hk_buf *out)
{
    if (c->nsubs == 0) {
        return;
    }
    hk_buf_addf(out, "    'vcctl %s') COMPREPLY=($(compgen -W '", c->name);
    write_subs(c, out);
    hk_buf_adds(out, "' -- \"$cur\")); return ;;\n");
    for (uint32_t k = 0; k < c->nsubs; k++) {
        write_bash_vcctl(&c->subs[k], out);
    }
}

static void write_bash(struct hk_buf *out)
{
    hk_buf_adds(out, "_hekla() {\n"
                     "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "    COMPREPLY=()\n"
                     "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "        COMPREPLY=($(compgen -W '");
    write_verbs(" ", out);
    hk_buf_adds(out, "' -- \"$cur\"))\n        return\n    fi\n"
                     "    case \"${COMP_WORDS[1]} $prev\" in\n");
    for (uint32_t k = 0; k < verb_table_len; k++) {
        const struct verb *v = verb_table[k];
        for (uint32_t i = 0; i < v->noption; i++) {
            const struct option_row *o = &v->options[i];
            if (o->choices) {
                hk_buf_addf(out, "    '%s --%s'", v->name, o->name);
                if (o->letter != 0) {
                    hk_buf_addf(out, "|'%s -%c'", v->name, o->letter);
                }
                hk_buf_addf(out, ") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n",
                            o->choices);
            }
        }
    }
    write_bash_vcctl(vcctl(), out);
    hk_buf_adds(out, "    'help help') COMPREPLY=($(compgen -W '");
    write_verbs(" ", out);
    hk_buf_adds(out, "' -- \"$cur\")); return ;;\n"
                     "    'completion completion') "
                     "COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")); return ;;\n"
                     "    esac\n    case \"${COMP_WORDS[1]} $cur\" in\n");
    for (uint32_t k = 0; k < verb_table_len; k++) {
        const struct verb *v = verb_table[k];
        hk_buf_addf(out, "    '%s -'*) COMPREPLY=($(compgen -W '--help", v->name);
        for (uint32_t i = 0; i < v->noption; i++) {
            hk_buf_addf(out, " --%s", v->options[i].name);
        }
        hk_buf_adds(out, "' -- \"$cur\")) ;;\n");
    }
    for (uint32_t k = 0; k < verb_table_len; k++) {
        if (verb_table[k]->names) {
            hk_buf_addf(out,
                        "    '%s '*) COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" %s -o name "
                        "2>/dev/null | sed 's|.*/||')\" -- \"$cur\")) ;;\n",
                        verb_table[k]->name, verb_table[k]->names);
        }
    }
    hk_buf_adds(out, "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n    esac\n}\n"
                     "complete -o filenames -F _hekla hekla\n");
}

/* ---- zsh ---- */

/* Quotes, brackets and colons mean something to _arguments. */
static void write_zsh_text(const char *s, struct hk_buf *out)
{
    for (; *s != '\0'; s++) {
        if (*s == '\'') {
            hk_buf_adds(out, "'\\''");
        } else {
            hk_buf_adds(out, strchr("[]:", *s) ? "\\" : "");
            hk_buf_addc(out, *s);
        }
    }
}

static void write_zsh_option(const struct option_row *o, struct hk_buf *out)
{
    const bool optional = option_is_optional(o);

    hk_buf_addf(out, " \\\n            '*--%s%s[", o->name, optional ? "=-" : o->arg ? "=" : "");
    write_zsh_text(o->help, out);
    hk_buf_adds(out, "]");
    if (optional) {
        hk_buf_adds(out, "::value:(true false)");
    } else if (o->choices) {
        hk_buf_addf(out, ":%s:(%s)", o->arg, o->choices);
    } else if (o->arg) {
        hk_buf_addf(out, ":%s:%s", o->arg, strcmp(o->arg, "FILE") == 0 ? "_files" : "");
    }
    hk_buf_addc(out, '\'');
}

static void write_zsh_vcctl(struct hk_buf *out)
{
    const struct command *c = vcctl();

    hk_buf_adds(out, "    vcctl)\n        if (( CURRENT == 2 )); then\n            compadd ");
    write_subs(c, out);
    hk_buf_adds(out, "\n        elif (( CURRENT == 3 )); then\n            case $words[2] in\n");
    for (uint32_t k = 0; k < c->nsubs; k++) {
        if (c->subs[k].nsubs > 0) {
            hk_buf_addf(out, "            %s) compadd ", c->subs[k].name);
            write_subs(&c->subs[k], out);
            hk_buf_adds(out, " ;;\n");
        }
    }
    hk_buf_adds(out, "            esac\n        else\n            _files\n        fi ;;\n");
}

static void write_zsh(struct hk_buf *out)
{
    hk_buf_adds(out, "#compdef hekla\n"
                     "_hekla_names() {\n"
                     "    compadd -- ${(f)\"$(hekla $1 -o name 2>/dev/null | sed 's|.*/||')\"}\n}\n"
                     "_hekla() {\n    if (( CURRENT == 2 )); then\n"
                     "        local -a verbs=(\n");
    for (uint32_t k = 0; k < verb_table_len; k++) {
        hk_buf_addf(out, "            '%s:", verb_table[k]->name);
        write_zsh_text(verb_table[k]->about, out);
        hk_buf_adds(out, "'\n");
    }
    hk_buf_adds(out, "        )\n        _describe verb verbs\n        return\n    fi\n"
                     "    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
                     "    case $verb in\n    help) compadd ");
    write_verbs(" ", out);
    hk_buf_adds(out, " ;;\n    completion) compadd bash zsh fish ;;\n");
    write_zsh_vcctl(out);
    for (uint32_t k = 0; k < verb_table_len; k++) {
        const struct verb *v = verb_table[k];
        if (v == &verb_help || v == &verb_completion || v == &verb_vcctl) {
            continue;
        }
        hk_buf_addf(out, "    %s)\n        _arguments '--help[show the manual page]'", v->name);
        for (uint32_t i = 0; i < v->noption; i++) {
            write_zsh_option(&v->options[i], out);
        }
        if (v->names) {
            hk_buf_addf(out, " '*:name:_hekla_names %s' ;;\n", v->names);
        } else {
            hk_buf_adds(out, " '*:file:_files' ;;\n");
        }
    }
    hk_buf_adds(out, "    esac\n}\n_hekla \"$@\"\n");
}

/* ---- fish ---- */

static void write_fish_text(const char *s, struct hk_buf *out)
{
    for (; *s != '\0'; s++) {
        hk_buf_adds(out, *s == '\'' || *s == '\\' ? "\\" : "");
        hk_buf_addc(out, *s);
    }
}

static void write_fish_option(const struct verb *v, const struct option_row *o, struct hk_buf *out)
{
    hk_buf_addf(out, "complete -c hekla -n '__fish_seen_subcommand_from %s' -l %s", v->name,
                o->name);
    if (o->letter != 0) {
        hk_buf_addf(out, " -s %c", o->letter);
    }
    if (o->choices) {
        hk_buf_addf(out, " -x -a '%s'", o->choices);
    } else if (o->arg && !option_is_optional(o)) {
        hk_buf_adds(out, strcmp(o->arg, "FILE") == 0 ? " -r -F" : " -x");
    }
    hk_buf_adds(out, " -d '");
    write_fish_text(o->help, out);
    hk_buf_adds(out, "'\n");
}

static void write_fish_vcctl(struct hk_buf *out)
{
    const struct command *c = vcctl();

    hk_buf_adds(out, "complete -c hekla -n '__fish_seen_subcommand_from vcctl; and not "
                     "__fish_seen_subcommand_from ");
    write_subs(c, out);
    hk_buf_adds(out, "' -f -a '");
    write_subs(c, out);
    hk_buf_adds(out, "'\n");
    for (uint32_t k = 0; k < c->nsubs; k++) {
        if (c->subs[k].nsubs > 0) {
            hk_buf_addf(out,
                        "complete -c hekla -n '__fish_seen_subcommand_from vcctl; and "
                        "__fish_seen_subcommand_from %s' -f -a '",
                        c->subs[k].name);
            write_subs(&c->subs[k], out);
            hk_buf_adds(out, "'\n");
        }
    }
}

static void write_fish(struct hk_buf *out)
{
    for (uint32_t k = 0; k < verb_table_len; k++) {
        const struct verb *v = verb_table[k];
        hk_buf_addf(out, "complete -c hekla -n __fish_use_subcommand -f -a %s -d '", v->name);
        write_fish_text(v->about, out);
        hk_buf_adds(out, "'\n");
        for (uint32_t i = 0; i < v->noption; i++) {
            write_fish_option(v, &v->options[i], out);
        }
        if (v->names) {
            hk_buf_addf(out,
                        "complete -c hekla -n '__fish_seen_subcommand_from %s' -f -a "
                        "'(hekla %s -o name 2>/dev/null | string replace -r \".*/\" \"\")'\n",
                        v->name, v->names);
        }
    }
    write_fish_vcctl(out);
    hk_buf_adds(out, "complete -c hekla -n '__fish_seen_subcommand_from completion' -f -a "
                     "'bash zsh fish'\n"
                     "complete -c hekla -n '__fish_seen_subcommand_from help' -f -a '");
    write_verbs(" ", out);
    hk_buf_adds(out, "'\n");
}

/* ---- the verb ---- */

static const struct shell shells[] = {
    {"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    const struct shell **ret = ctx;

    for (size_t k = 0; k < HK_LEN(shells) && !*ret; k++) {
        if (strcmp(value, shells[k].name) == 0) {
            *ret = &shells[k];
            return 0;
        }
    }
    return hk_fail(err, HK_EINVAL, "shell is '%s', want one of: bash zsh fish", value);
}

static int run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct shell *shell = NULL;
    const int rc = verb_parse(v, argc, argv, take, &shell);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!shell) {
        return verb_complain("completion: want a shell: bash, zsh or fish");
    }
    shell->write(&out);
    return verb_print(&out);
}

const struct verb verb_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .about = "print a completion script for a shell",
    .text = "Prints a script that teaches the shell the verbs and options of this program, and "
            "lets it ask the server for names.",
    .rest =
        "EXAMPLES\n"
        "       bash:  hekla completion bash >~/.local/share/bash-completion/completions/hekla\n"
        "       zsh:   hekla completion zsh >\"${fpath[1]}/_hekla\"\n"
        "       fish:  hekla completion fish >~/.config/fish/completions/hekla.fish\n",
    .run = run,
};
