// SPDX-License-Identifier: Apache-2.0
// hekla __complete WORD...: prints candidates for the last, half-typed word. The first word is the
// program. A line is a candidate, optionally followed by a tab and a description; ":files" and
// ":dirs" ask the shell for names of files and directories. Candidates come from the tables of
// options and commands, and names of objects from the server, within one second. Errors print
// nothing: the user is in the middle of a line.
#include "cmd/complete.h"

#include "cli/command.h"
#include "user/user.h"

#include <signal.h>
#include <unistd.h>

enum { ANSWER_S = 1 };

struct complete_args {
    struct option_list words;
};

struct complete {
    struct hk_arena mem;
    struct option_list words; /* as the program would get them; the last is half-typed */
    const char *typed;        /* the part of the last word that the shell replaces */
    const char *value;        /* the part of it that candidates must match */
    struct user_opts user;    /* from the options typed so far */
    struct hk_buf out;
};

/* ---- candidates ---- */

/* The shell replaces more than the value if both are in one word: "--output=j". */
static void add_answer(struct complete *c, const char *word, const char *about)
{
    const size_t before = strlen(c->typed) - strlen(c->value);

    if (!hk_str_starts(hk_str(word), c->value)) {
        return;
    }
    hk_buf_addf(&c->out, "%.*s%s", (int)before, c->typed, word);
    if (about && about[0] != '\0') {
        hk_buf_addf(&c->out, "\t%s", about);
    }
    hk_buf_addc(&c->out, '\n');
}

static void complete_add_words(struct complete *c, const char *words)
{
    struct hk_str rest = hk_str(words), word;

    while (hk_str_cut(&rest, ' ', &word)) {
        add_answer(c, hk_arena_str(&c->mem, word).s, NULL);
    }
}

static void add_verbs(struct complete *c)
{
    for (uint32_t k = 0; k < verb_table_len; k++) {
        if (!verb_table[k]->hidden) {
            add_answer(c, verb_table[k]->name, verb_table[k]->about);
        }
    }
}

/* Prints the candidates collected so far. */
static void flush_answers(struct complete *c)
{
    (void)verb_print(&c->out);
    hk_buf_clear(&c->out);
}

/* Adds names from the server. Prints the other candidates first: the alarm may end the process. */
static void add_names(struct complete *c, enum api_kind_id kind)
{
    HK_AUTO(port_answer_fini) struct port_answer all = {0};
    struct user u = {0};
    struct hk_err err = {0};

    flush_answers(c);
    if (user_open(&u, &c->user, &err) == 0 && user_list(&u, kind, u.ns, NULL, &all, &err) == 0) {
        for (uint32_t i = 0; i < all.objects.len; i++) {
            add_answer(c, hk_arena_str(&c->mem, all.objects.at[i]->name).s, NULL);
        }
    }
    user_close(&u);
}

/* Adds candidates by the placeholder in help: "FILE", "JOB|POD". */
static void add_values(struct complete *c, const char *arg)
{
    static const struct {
        const char *arg;
        enum api_kind_id kind;
    } kinds[] = {{"JOB", API_JOB},   {"POD", API_POD},      {"QUEUE", API_QUEUE},
                 {"NODE", API_NODE}, {"FLOW", API_JOBFLOW}, {"NAMESPACE", API_NAMESPACE}};
    struct hk_str rest = hk_str(arg), word;

    while (hk_str_cut(&rest, '|', &word)) {
        for (size_t i = 0; i < HK_LEN(kinds); i++) {
            if (hk_str_is(word, kinds[i].arg)) {
                add_names(c, kinds[i].kind);
            }
        }
        if (hk_str_is(word, "VERB")) {
            add_verbs(c);
        } else if (hk_str_is(word, "DIR")) {
            hk_buf_adds(&c->out, ":dirs\n");
        } else if (hk_str_is(word, "FILE") || hk_str_is(word, "SRC") || hk_str_is(word, "DST") ||
                   hk_str_is(word, "COMMAND")) {
            hk_buf_adds(&c->out, ":files\n");
        }
    }
}

static void add_row_values(struct complete *c, const struct option_row *row)
{
    if (row->type == OPTION_BOOL) {
        complete_add_words(c, "true false");
    } else if (row->choices) {
        complete_add_words(c, row->choices);
    } else {
        add_values(c, row->arg);
    }
}

/* ---- verbs ---- */

/* Remembers options that select the server and the namespace, for names of objects. */
static void note_option(struct complete *c, const char *name, const char *value)
{
    if (strcmp(name, "kubeconfig") == 0) {
        c->user.kubeconfig = value;
    } else if (strcmp(name, "server") == 0 || strcmp(name, "master") == 0) {
        c->user.server = value;
    } else if (strcmp(name, "namespace") == 0) {
        c->user.ns = value;
    } else if (strcmp(name, "all-namespaces") == 0) {
        c->user.all_namespaces = true;
    }
}

/* The first letter that needs a value decides; the rest is the value. */
static bool find_letters(const struct option_row *table, const char *letters,
                         struct option_row *ret, const char **ret_value)
{
    bool found = false;

    for (const char *p = letters; *p != '\0'; p++) {
        found = option_find_letter(table, *p, ret);
        if (!found) {
            return false;
        }
        if (option_wants_value(ret)) {
            *ret_value = p[1] == '\0' ? NULL : p[1] == '=' ? p + 2 : p + 1;
            return true;
        }
    }
    return found;
}

/* The row of "--name", "--name=value" or "-abc"; *ret_value is NULL if the word has no value. */
static bool find_typed(const struct option_row *table, const char *word, struct option_row *ret,
                       const char **ret_value)
{
    struct hk_str rest = hk_str(word + 2), name;

    *ret_value = NULL;
    if (word[1] != '-') {
        return find_letters(table, word + 1, ret, ret_value);
    }
    hk_str_cut(&rest, '=', &name);
    *ret_value = rest.s;
    return option_find(table, name, ret);
}

static void add_options(struct complete *c, const struct verb *v)
{
    struct option_row row;

    for (uint32_t i = 0; option_at(verb_options(v), i, &row); i++) {
        if (!option_is_argument(&row) && !row.ignored) {
            add_answer(c, hk_arena_printf(&c->mem, "--%s", row.name), row.help);
        }
    }
    add_answer(c, "--help", option_help.help);
}

static void add_arguments(struct complete *c, const struct verb *v, uint32_t n)
{
    struct option_row row;

    for (uint32_t i = 0; option_at(verb_options(v), i, &row); i++) {
        if (option_is_argument(&row) && (n-- == 0 || row.type == OPTION_ARGUMENTS)) {
            add_row_values(c, &row);
            return;
        }
    }
}

static bool starts_command(const struct verb *v)
{
    struct option_row row;

    for (uint32_t i = 0; option_at(verb_options(v), i, &row); i++) {
        if (row.command) {
            return true;
        }
    }
    return false;
}

/* Words from first on belong to the verb. */
static void complete_verb(struct complete *c, const struct verb *v, uint32_t first)
{
    const uint32_t last = c->words.len - 1;
    struct option_row row;
    const char *value;
    bool plain = false;
    uint32_t narguments = 0;

    for (uint32_t i = first; i < last; i++) {
        const char *word = c->words.at[i];

        if (plain || word[0] != '-' || word[1] == '\0') {
            narguments++;
            plain = plain || starts_command(v);
        } else if (strcmp(word, "--") == 0) {
            plain = true;
        } else if (find_typed(verb_options(v), word, &row, &value)) {
            if (!value && option_wants_value(&row) && i + 1 == last) {
                add_row_values(c, &row);
                return;
            }
            value = value ? value : option_wants_value(&row) ? c->words.at[++i] : "";
            note_option(c, row.name, value);
        }
    }
    const char *word = c->words.at[last];
    if (plain || word[0] != '-') {
        add_arguments(c, v, narguments);
    } else if (strchr(word, '=') && find_typed(verb_options(v), word, &row, &value) && value) {
        c->value = value;
        add_row_values(c, &row);
    } else {
        add_options(c, v);
    }
}

/* ---- vcctl and its short forms ---- */

static const struct command_flag *flag_of(const struct command *command, const char *word)
{
    const bool is_long = word[0] == '-' && word[1] == '-';
    struct hk_str rest = hk_str(word + (is_long ? 2 : 1)), name;

    hk_str_cut(&rest, '=', &name);
    for (uint32_t i = 0; command_flag_at(command, i); i++) {
        const struct command_flag *f = command_flag_at(command, i);
        if (is_long ? hk_str_is(name, f->name) : name.n == 1 && f->letter == name.s[0]) {
            return f;
        }
    }
    return NULL;
}

/* Flags of Volcano's commands have no placeholders: the flag's name decides, and for names of
 * objects the command group. */
static const char *flag_values(const struct command_flag *f, const char *group)
{
    static const struct {
        const char *flag, *group, *arg;
    } rows[] = {
        {"filename", NULL, "FILE"},   {"file", NULL, "FILE"},
        {"kubeconfig", NULL, "FILE"}, {"namespace", NULL, "NAMESPACE"},
        {"queue", NULL, "QUEUE"},     {"job", NULL, "JOB"},
        {"name", "job", "JOB"},       {"name", "queue", "QUEUE"},
        {"name", "jobflow", "FLOW"},  {"name", "vcancel", "JOB"},
        {"name", "vsuspend", "JOB"},  {"name", "vresume", "JOB"},
        {"name", "vjobs", "JOB"},     {"name", "vqueues", "QUEUE"},
    };

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (strcmp(f->name, rows[i].flag) == 0 &&
            (!rows[i].group || strcmp(group, rows[i].group) == 0)) {
            return rows[i].arg;
        }
    }
    return "";
}

static void add_flag_values(struct complete *c, const struct command_flag *f, const char *group)
{
    const char *choices = command_flag_choices(f);

    if (choices) {
        complete_add_words(c, choices);
    } else {
        add_values(c, flag_values(f, group));
    }
}

static void add_flags(struct complete *c, const struct command *command)
{
    for (uint32_t i = 0; command_flag_at(command, i); i++) {
        const struct command_flag *f = command_flag_at(command, i);
        add_answer(c, hk_arena_printf(&c->mem, "--%s", f->name), f->help);
    }
}

static const struct command *complete_sub_of(const struct command *command, const char *word)
{
    for (uint32_t i = 0; i < command->nsubs; i++) {
        if (strcmp(command->subs[i].name, word) == 0) {
            return &command->subs[i];
        }
    }
    return NULL;
}

static void complete_command(struct complete *c, const struct command *command, uint32_t first)
{
    const uint32_t last = c->words.len - 1;
    const char *group = command->name, *word = c->words.at[last];
    const struct command_flag *f = NULL;

    c->user.ns = "default"; /* Volcano's commands ignore the kubeconfig's namespace */
    for (uint32_t i = first; i < last; i++) {
        const struct command *sub = complete_sub_of(command, c->words.at[i]);

        if (c->words.at[i][0] != '-') {
            group = sub && command->action == COMMAND_GROUP && sub->nsubs > 0 ? sub->name : group;
            command = sub ? sub : command;
            continue;
        }
        const char *equals = strchr(c->words.at[i], '=');
        f = flag_of(command, c->words.at[i]);
        if (!f || (!equals && command_flag_word(f)[0] == '\0')) {
            continue;
        }
        if (!equals && i + 1 == last) {
            add_flag_values(c, f, group);
            return;
        }
        note_option(c, f->name, equals ? equals + 1 : c->words.at[++i]);
    }
    if (word[0] == '-' && strchr(word, '=') && (f = flag_of(command, word))) {
        c->value = strchr(word, '=') + 1;
        add_flag_values(c, f, group);
    } else if (word[0] == '-') {
        add_flags(c, command);
    }
    for (uint32_t i = 0; word[0] != '-' && i < command->nsubs; i++) {
        add_answer(c, command->subs[i].name, command->subs[i].about);
    }
}

/* ---- the verb ---- */

/* bash splits "--output=j" at the '='. */
static void join_words(struct complete *c, const struct option_list *given)
{
    for (uint32_t i = 0; i < given->len; i++) {
        const char *word = given->at[i];

        c->typed = c->value = word;
        if (c->words.len > 1 && strcmp(word, "=") == 0) {
            word = i + 1 < given->len ? given->at[++i] : "";
            c->typed = c->value = word;
            c->words.at[c->words.len - 1] =
                hk_arena_printf(&c->mem, "%s=%s", c->words.at[c->words.len - 1], word);
        } else {
            hk_vec_push(&c->words, word);
        }
    }
}

static void complete_line(struct complete *c)
{
    const struct hk_str program = verb_program_name(c->words.at[0]);
    const struct command *command = command_program(program);
    const struct verb *v = verb_of_server(program);

    if (command) {
        complete_command(c, command, 1);
    } else if (v) {
        complete_verb(c, v, 1);
    } else if (c->words.len == 2) {
        add_verbs(c);
    } else if (strcmp(c->words.at[1], "vcctl") == 0) {
        complete_command(c, command_program(HK_STR("vcctl")), 2);
    } else if ((v = verb_find(c->words.at[1]))) {
        complete_verb(c, v, 2);
    }
}

static void on_alarm(int signo)
{
    _exit(EXIT_OK);
}

static const struct option_row options[] = {
    ROW_COMMAND("WORD", struct complete_args, words),
    ROW_END,
};

static int complete_run(const struct verb *v, int argc, char **argv)
{
    struct complete_args a = {0};
    struct complete c = {0};
    const int rc = verb_parse(v, argc, argv, &a);

    if (rc == 0 && a.words.len > 1) {
        signal(SIGALRM, on_alarm);
        alarm(ANSWER_S);
        join_words(&c, &a.words);
        complete_line(&c);
        flush_answers(&c);
    }
    hk_vec_fini(&a.words);
    hk_vec_fini(&c.words);
    hk_buf_fini(&c.out);
    hk_arena_fini(&c.mem);
    return rc < 0 ? EXIT_BAD : EXIT_OK;
}

const struct verb verb_complete = {
    .name = COMPLETE_VERB,
    .args = "WORD...",
    .about = "say what may follow a half-typed line, for the scripts of 'hekla completion'",
    .options = options,
    .text = "Prints what may stand in the place of the last word; the first is the program.",
    .hidden = true,
    .run = complete_run,
};
