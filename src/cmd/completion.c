// SPDX-License-Identifier: Apache-2.0
// hekla completion: scripts for shells, made from the tables of verbs and of Volcano's commands.
// Both become places, known by the words that lead there ("hekla up", "vcctl job run"): a place has
// words that may follow and flags, and each shell is taught the places one by one.
#include "cli/command.h"
#include "cmd/verb.h"

#define SHELLS "bash zsh fish"

/* ---- places ---- */

struct place {
    const char *path;
    const struct verb *verb;       /* or NULL */
    const struct command *command; /* or NULL; neither: the program itself */
};

struct flag {
    char letter; /* 0 when there is none */
    const char *name;
    const char *arg; /* NULL: takes none */
    bool optional;   /* only behind '=' */
    const char *choices;
    const char *help;
};

typedef void place_fn(const struct place *p, struct hk_buf *out);

static void each_command(const struct command *c, const char *path, place_fn *fn,
                         struct hk_buf *out)
{
    fn(&(struct place){.path = path, .command = c}, out);
    for (uint32_t i = 0; i < c->nsubs; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf below = {0};

        hk_buf_addf(&below, "%s %s", path, c->subs[i].name);
        each_command(&c->subs[i], below.data, fn, out);
    }
}

/* "hekla vcctl ..." is where "vcctl ..." is. */
static void each_place(place_fn *fn, struct hk_buf *out)
{
    fn(&(struct place){.path = "hekla"}, out);
    for (uint32_t k = 0; k < verb_table_len; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

        hk_buf_addf(&path, "hekla %s", verb_table[k]->name);
        if (verb_table[k] != &verb_vcctl) {
            fn(&(struct place){.path = path.data, .verb = verb_table[k]}, out);
        }
    }
    for (uint32_t i = 0; command_program_at(i); i++) {
        each_command(command_program_at(i), command_program_at(i)->name, fn, out);
    }
}

static struct flag verb_flag(const struct option_row *o)
{
    const bool optional = option_is_optional(o);

    return (struct flag){.letter = o->letter,
                         .name = o->name,
                         .arg = o->arg,
                         .optional = optional,
                         .choices = optional ? "true false" : o->choices,
                         .help = o->help};
}

/* False behind the last. */
static bool flag_at(const struct place *p, uint32_t i, struct flag *ret)
{
    if (p->command) {
        const struct command_flag *f = command_flag_at(p->command, i);
        if (!f) {
            return false;
        }
        const char *word = command_flag_word(f);
        *ret = (struct flag){.letter = f->letter,
                             .name = f->name,
                             .arg = word[0] != '\0' ? word : NULL,
                             .choices = command_flag_choices(f),
                             .help = f->help};
        return true;
    }
    const uint32_t n = p->verb ? p->verb->noption : 0;
    if (i > n) {
        return false;
    }
    *ret = verb_flag(i < n ? &p->verb->options[i] : &verb_help_option);
    return true;
}

/* Files and directories may be given: by the word for the value, and by what Volcano's flags are
 * called. */
static bool takes_dir(const struct flag *f)
{
    return f->arg && strcmp(f->arg, "DIR") == 0;
}

static bool takes_file(const struct flag *f)
{
    static const char *const names[] = {"filename", "file", "kubeconfig"};
    bool file = f->arg && strcmp(f->arg, "FILE") == 0;

    for (size_t k = 0; f->arg && !file && k < HK_LEN(names); k++) {
        file = strcmp(f->name, names[k]) == 0;
    }
    return file;
}

/* The words that may follow; "" when those are files, or nothing. */
static void write_words(const struct place *p, struct hk_buf *out)
{
    const bool verbs = !p->command && (!p->verb || p->verb == &verb_help);

    for (uint32_t k = 0; verbs && k < verb_table_len; k++) {
        hk_buf_addf(out, "%s%s", k > 0 ? " " : "", verb_table[k]->name);
    }
    for (uint32_t k = 0; p->command && k < p->command->nsubs; k++) {
        hk_buf_addf(out, "%s%s", k > 0 ? " " : "", p->command->subs[k].name);
    }
    hk_buf_adds(out, p->verb == &verb_completion ? SHELLS : "");
}

static void write_programs(struct hk_buf *out)
{
    hk_buf_adds(out, "hekla");
    for (uint32_t i = 0; command_program_at(i); i++) {
        hk_buf_addf(out, " %s", command_program_at(i)->name);
    }
}

/* ---- bash ---- */

static void write_bash_words(const struct place *p, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};

    write_words(p, &words);
    if (words.len > 0) {
        hk_buf_addf(out, "    '%s') words='%s' ;;\n", p->path, words.data);
    }
}

/* The list whose names may follow. */
static const char *names_of(const struct place *p)
{
    return p->verb ? p->verb->names : NULL;
}

static void write_bash_names(const struct place *p, struct hk_buf *out)
{
    if (names_of(p)) {
        hk_buf_addf(out, "    '%s') list=%s ;;\n", p->path, names_of(p));
    }
}

static void write_bash_flags(const struct place *p, struct hk_buf *out)
{
    struct flag f;

    hk_buf_addf(out, "    '%s') words='", p->path);
    for (uint32_t i = 0; flag_at(p, i, &f); i++) {
        hk_buf_addf(out, "%s--%s", i > 0 ? " " : "", f.name);
    }
    hk_buf_adds(out, "' ;;\n");
}

static void write_bash_values(const struct place *p, struct hk_buf *out)
{
    struct flag f;

    for (uint32_t i = 0; flag_at(p, i, &f); i++) {
        if (!f.arg) {
            continue;
        }
        hk_buf_addf(out, "    '%s --%s'", p->path, f.name);
        if (f.letter != 0) {
            hk_buf_addf(out, "|'%s -%c'", p->path, f.letter);
        }
        if (f.choices) {
            hk_buf_addf(out, ") kind=%s words='%s' ;;\n", f.optional ? "maybe" : "words",
                        f.choices);
        } else {
            hk_buf_addf(out, ") kind=%s ;;\n",
                        takes_dir(&f)    ? "dirs"
                        : takes_file(&f) ? "files"
                                         : "any");
        }
    }
}

static void write_bash(struct hk_buf *out)
{
    hk_buf_adds(out, "# What may follow the words in $1.\n"
                     "_hekla_words() {\n    words=\n    case $1 in\n");
    each_place(write_bash_words, out);
    hk_buf_adds(out, "    esac\n}\n# The list whose names may follow.\n"
                     "_hekla_names() {\n    local list=\n    case $1 in\n");
    each_place(write_bash_names, out);
    hk_buf_adds(out, "    esac\n"
                     "    [ -z \"$list\" ] ||\n"
                     "        words=$(\"${COMP_WORDS[0]}\" $list -o name 2>/dev/null | sed "
                     "'s|.*/||')\n");
    hk_buf_adds(out, "}\n_hekla_flags() {\n    words=\n    case $1 in\n");
    each_place(write_bash_flags, out);
    hk_buf_adds(out, "    esac\n}\n# The value of the flag $2 there.\n"
                     "_hekla_value() {\n    kind= words=\n    case \"$1 $2\" in\n");
    each_place(write_bash_values, out);
    hk_buf_adds(out, "    esac\n}\n"
                     "_hekla() {\n"
                     "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "    local at=${COMP_WORDS[0]##*/} equals= words kind i\n"
                     "    COMPREPLY=()\n"
                     "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                     "        _hekla_words \"$at\"\n"
                     "        case \" $words \" in\n"
                     "        *\" ${COMP_WORDS[i]} \"*) at+=\" ${COMP_WORDS[i]}\" ;;\n"
                     "        esac\n"
                     "        [ \"$at\" = 'hekla vcctl' ] && at=vcctl\n"
                     "    done\n"
                     "    if [ \"$cur\" = = ]; then\n"
                     "        cur= equals=1\n"
                     "    elif [ \"$prev\" = = ]; then\n"
                     "        prev=${COMP_WORDS[COMP_CWORD-2]} equals=1\n"
                     "    fi\n"
                     "    _hekla_value \"$at\" \"$prev\"\n"
                     "    [ \"$kind\" = maybe ] && kind=${equals:+words}\n"
                     "    case $kind in\n"
                     "    words) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
                     "    files) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
                     "    dirs) COMPREPLY=($(compgen -d -- \"$cur\")) ;;\n"
                     "    esac\n"
                     "    [ -z \"$kind\" ] || return 0\n"
                     "    case $cur in\n"
                     "    -*) _hekla_flags \"$at\" ;;\n"
                     "    *) _hekla_words \"$at\"; [ -n \"$words\" ] || _hekla_names \"$at\" ;;\n"
                     "    esac\n"
                     "    if [ -n \"$words\" ]; then\n"
                     "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                     "    elif [ \"${at%% *}\" = hekla ]; then\n"
                     "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                     "    fi\n"
                     "}\n"
                     "complete -o filenames -F _hekla ");
    write_programs(out);
    hk_buf_addc(out, '\n');
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

static void write_zsh_flag(const struct flag *f, bool letter, struct hk_buf *out)
{
    if (letter) {
        hk_buf_addf(out, " \\\n            '*-%c%s[", f->letter, f->arg && !f->optional ? "+" : "");
    } else {
        hk_buf_addf(out, " \\\n            '*--%s%s[", f->name,
                    f->optional ? "=-"
                    : f->arg    ? "="
                                : "");
    }
    write_zsh_text(f->help, out);
    hk_buf_adds(out, "]");
    if (f->arg) {
        hk_buf_adds(out, f->optional ? "::value:" : ":value:");
        hk_buf_addf(out, f->choices ? "(%s)" : "%s",
                    f->choices      ? f->choices
                    : takes_dir(f)  ? "_files -/"
                    : takes_file(f) ? "_files"
                                    : "");
    }
    hk_buf_addc(out, '\'');
}

/* Words with what they are about: "((up\:"run a ..." down\:"end ..."))". */
static void write_zsh_words(const struct place *p, const char *words, struct hk_buf *out)
{
    if (p->verb) {
        hk_buf_addf(out, "(%s)", words);
        return;
    }
    hk_buf_adds(out, "((");
    for (uint32_t k = 0; !p->command && k < verb_table_len; k++) {
        hk_buf_addf(out, " %s\\:\"", verb_table[k]->name);
        write_zsh_text(verb_table[k]->about, out);
        hk_buf_addc(out, '"');
    }
    for (uint32_t k = 0; p->command && k < p->command->nsubs; k++) {
        hk_buf_addf(out, " %s\\:\"", p->command->subs[k].name);
        write_zsh_text(p->command->subs[k].about, out);
        hk_buf_addc(out, '"');
    }
    hk_buf_adds(out, "))");
}

static void write_zsh_place(const struct place *p, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};
    struct flag f;

    write_words(p, &words);
    hk_buf_addf(out, "    '%s')\n        _arguments -s", p->path);
    for (uint32_t i = 0; flag_at(p, i, &f); i++) {
        write_zsh_flag(&f, false, out);
        if (f.letter != 0) {
            write_zsh_flag(&f, true, out);
        }
    }
    if (words.len > 0) {
        hk_buf_adds(out, " \\\n            '1:word:");
        write_zsh_words(p, words.data, out);
        hk_buf_adds(out, "' ;;\n");
    } else {
        hk_buf_addf(out, names_of(p) ? " \\\n            '*:name:_hekla_names %s' ;;\n" : "%s",
                    names_of(p)  ? names_of(p)
                    : p->command ? " ;;\n"
                                 : " \\\n            '*:file:_files' ;;\n");
    }
}

static void write_zsh_step(const struct place *p, struct hk_buf *out)
{
    if (p->verb || (p->command && strchr(p->path, ' '))) {
        hk_buf_addf(out, "        '%s'|\\\n", p->path);
    }
}

static void write_zsh(struct hk_buf *out)
{
    hk_buf_adds(out, "#compdef ");
    write_programs(out);
    hk_buf_adds(out, "\n_hekla_names() {\n"
                     "    compadd -- ${(f)\"$(hekla $1 -o name 2>/dev/null | sed 's|.*/||')\"}\n"
                     "}\n_hekla() {\n    local at=${service:t}\n"
                     "    while (( CURRENT > 2 )); do\n        case \"$at $words[2]\" in\n");
    each_place(write_zsh_step, out);
    hk_buf_adds(out, "        'hekla vcctl') at=\"$at $words[2]\" ;;\n"
                     "        *) break ;;\n        esac\n"
                     "        [[ $at = 'hekla vcctl' ]] && at=vcctl\n"
                     "        shift words\n        (( CURRENT-- ))\n    done\n"
                     "    case $at in\n");
    each_place(write_zsh_place, out);
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

/* What vcctl knows, hekla vcctl does too. */
static void write_fish_begin(const struct place *p, const char *test, struct hk_buf *out)
{
    const int n = (int)strcspn(p->path, " ");
    const bool both = n == 5 && memcmp(p->path, "vcctl", 5) == 0;

    hk_buf_addf(out, "complete -c %.*s%s -n '%s %s'", n, p->path, both ? " -c hekla" : "", test,
                p->path);
}

static void write_fish_flag(const struct place *p, const struct flag *f, struct hk_buf *out)
{
    write_fish_begin(p, "__hekla_at", out);
    hk_buf_addf(out, " -l %s", f->name);
    if (f->letter != 0) {
        hk_buf_addf(out, " -s %c", f->letter);
    }
    if (f->arg && !f->optional) {
        hk_buf_adds(out, takes_file(f) || takes_dir(f) ? " -r -F" : " -x");
        hk_buf_addf(out, f->choices ? " -a '%s'" : "%s", f->choices ? f->choices : "");
    }
    hk_buf_adds(out, " -d '");
    write_fish_text(f->help, out);
    hk_buf_adds(out, "'\n");
}

static void write_fish_word(const struct place *p, const char *word, const char *about,
                            struct hk_buf *out)
{
    write_fish_begin(p, "__hekla_is", out);
    hk_buf_addf(out, " -f -a %s -d '", word);
    write_fish_text(about, out);
    hk_buf_adds(out, "'\n");
}

static void write_fish_place(const struct place *p, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};
    struct flag f;

    for (uint32_t k = 0; !p->verb && !p->command && k < verb_table_len; k++) {
        write_fish_word(p, verb_table[k]->name, verb_table[k]->about, out);
    }
    for (uint32_t k = 0; p->command && k < p->command->nsubs; k++) {
        write_fish_word(p, p->command->subs[k].name, p->command->subs[k].about, out);
    }
    write_words(p, &words);
    if (p->verb && words.len > 0) {
        write_fish_begin(p, "__hekla_is", out);
        hk_buf_addf(out, " -f -a '%s'\n", words.data);
    }
    if (names_of(p)) {
        write_fish_begin(p, "__hekla_at", out);
        hk_buf_addf(out,
                    " -f -a '(hekla %s -o name 2>/dev/null | string replace -r \".*/\" \"\")'\n",
                    names_of(p));
    }
    if (p->command) {
        write_fish_begin(p, "__hekla_at", out);
        hk_buf_adds(out, " -f\n"); /* Volcano's take flags only */
    }
    for (uint32_t i = 0; flag_at(p, i, &f); i++) {
        write_fish_flag(p, &f, out);
    }
}

static void write_fish(struct hk_buf *out)
{
    hk_buf_adds(out, "# The words typed so far, without flags.\n"
                     "function __hekla_typed\n"
                     "    set -l typed (string match -v -- '-*' (commandline -opc))\n"
                     "    set typed[1] (string replace -r '.*/' '' -- $typed[1])\n"
                     "    string replace -r '^hekla vcctl' vcctl -- \"$typed\"\n"
                     "end\n"
                     "function __hekla_is\n"
                     "    test \"$argv\" = (__hekla_typed)\n"
                     "end\n"
                     "function __hekla_at\n"
                     "    string match -q -- \"$argv *\" (__hekla_typed)' '\n"
                     "end\n");
    each_place(write_fish_place, out);
}

/* ---- the verb ---- */

struct shell {
    const char *name;
    void (*write)(struct hk_buf *out);
};

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
    return hk_fail(err, HK_EINVAL, "shell is '%s', want one of: " SHELLS, value);
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
    .text =
        "Prints a script that teaches the shell the verbs and options of this program, and the "
        "commands and flags of vcctl and its short forms. 'make install' puts the scripts where "
        "the shells find them.",
    .rest = "EXAMPLES\n"
            "       bash:  source <(hekla completion bash)\n"
            "       zsh:   hekla completion zsh >\"${fpath[1]}/_hekla\"\n"
            "       fish:  hekla completion fish | source\n",
    .run = run,
};
