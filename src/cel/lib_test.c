// SPDX-License-Identifier: Apache-2.0
// The libraries: strings, lists, sets, regular expressions, URLs, addresses, quantities, versions,
// named formats, encodings, and objects of the caller.
#include "cel/cel_rig_test.h"

static const struct cel_case strings[] = {
    {"'tacocat'.charAt(3)", "", "\"o\""},
    {"'ta\xC3\xA4'.charAt(2)", "", "\"\xC3\xA4\""},
    {"'abc'.charAt(3)", "", "\"\""},
    {"'abc'.charAt(4)", "", "error: index out of range: 4"},
    {"'abc'.charAt(-1)", "", "error: index out of range: -1"},
    {"'hello mellow'.indexOf('ello')", "", "1"},
    {"'hello mellow'.indexOf('ello', 2)", "", "7"},
    {"'hello mellow'.indexOf('')", "", "0"},
    {"'hello'.indexOf('z')", "", "-1"},
    {"'hello'.indexOf('h', 9)", "", "error: index out of range: 9"},
    {"'\xC3\xA4\xC3\xB6\xC3\xBC'.indexOf('\xC3\xBC')", "", "2"},
    {"'hello mellow'.lastIndexOf('ello')", "", "7"},
    {"'hello mellow'.lastIndexOf('ello', 6)", "", "1"},
    {"'hello'.lastIndexOf('')", "", "5"},
    {"'hello'.lastIndexOf('hello there')", "", "-1"},
    {"'TacoCat \xC3\x84'.lowerAscii()", "", "\"tacocat \xC3\x84\""},
    {"'tacocat \xC3\xA4'.upperAscii()", "", "\"TACOCAT \xC3\xA4\""},
    {"'hello hello'.replace('he', 'we')", "", "\"wello wello\""},
    {"'hello hello'.replace('he', 'we', 1)", "", "\"wello hello\""},
    {"'hello'.replace('he', 'we', 0)", "", "\"hello\""},
    {"'ab'.replace('', '-')", "", "\"-a-b-\""},
    {"'\xC3\xA4x'.replace('', '-', 2)", "", "\"-\xC3\xA4-x\""},
    {"''.replace('', '-')", "", "\"-\""},
    {"'a,b,c'.split(',')", "", "[\"a\",\"b\",\"c\"]"},
    {"'a,b,c'.split(',', 2)", "", "[\"a\",\"b,c\"]"},
    {"'a,b,c'.split(',', 1)", "", "[\"a,b,c\"]"},
    {"'a,b'.split(',', 0)", "", "[]"},
    {"'a,'.split(',')", "", "[\"a\",\"\"]"},
    {"','.split(',')", "", "[\"\",\"\"]"},
    {"''.split(',')", "", "[\"\"]"},
    {"'ab\xC3\xA4'.split('')", "", "[\"a\",\"b\",\"\xC3\xA4\"]"},
    {"'tacocat'.substring(4)", "", "\"cat\""},
    {"'tacocat'.substring(0, 4)", "", "\"taco\""},
    {"'ab\xC3\xA4"
     "cd'.substring(2, 4)",
     "",
     "\"\xC3\xA4"
     "c\""},
    {"'abc'.substring(2, 1)", "", "error: invalid substring range. start: 2, end: 1"},
    {"'abc'.substring(4)", "", "error: index out of range: 4"},
    {"' \\t a b\\n '.trim()", "", "\"a b\""},
    {"' \\u00a0'.trim()", "", "\"\""},
    {"['a', 'b'].join()", "", "\"ab\""},
    {"['a', 'b'].join('-')", "", "\"a-b\""},
    {"[1].join()", "", "error: no such overload: join"},
    {"'ab\xC3\xA4'.reverse()", "",
     "\"\xC3\xA4"
     "ba\""},
    {"strings.quote('a\"b\\n')", "", "\"\\\"a\\\\\\\"b\\\\n\\\"\""},
    {"'abc'.contains('b') && 'abc'.contains('')", "", "true"},
    {"'abc'.startsWith('ab') && 'abc'.endsWith('bc') && !'a'.endsWith('aa')", "", "true"},
    {"'\xC3\xA4'.size()", "", "1"},
    {"size('ab') + size([1]) + size({'a': 1}) + size(b'abc')", "", "7"},
};

static const struct cel_case formats[] = {
    {"'%s is %d'.format(['x', 5])", "", "\"x is 5\""},
    {"'%%'.format([])", "", "\"%\""},
    {"'%s %s %s'.format([true, null, 1.5])", "", "\"true null 1.5\""},
    {"'%s'.format([['a', 1]])", "", "\"[a, 1]\""},
    {"'%s'.format([[1, 2]])", "", "\"[1, 2]\""},
    {"'%s'.format([{'b': 1, 'a': [2]}])", "", "\"{a: [2], b: 1}\""},
    {"'%s'.format([x])", "{'x': {'b': 1, 'a': ['q']}}", "\"{a: [q], b: 1}\""},
    {"'%s'.format([timestamp(0)])", "", "\"1970-01-01T00:00:00Z\""},
    {"'%s'.format([duration('90s')])", "", "\"90s\""},
    {"'%s'.format([type(1)])", "", "\"int\""},
    {"'%s %d'.format([double('NaN'), double('-Inf')])", "", "\"NaN -Infinity\""},
    {"'%.2f'.format([1.237])", "", "\"1.24\""},
    {"'%f'.format([2])", "", "\"2.000000\""},
    {"'%.1e'.format([1234.5])", "", "\"1.2e+03\""},
    {"'%x %X %o %b'.format([255, 254, 8, -5])", "", "\"ff FE 10 -101\""},
    {"'%x %b'.format([dyn('hi'), dyn(true)])", "", "\"6869 1\""},
    {"'%d'.format(['a'])", "",
     "error: error during formatting: decimal clause cannot be used on "
     "string"},
    {"'%s'.format([])", "", "error: index 0 out of range"},
    {"'%q'.format([1])", "",
     "error: could not parse formatting clause: unrecognized formatting clause \"q\""},
    {"'%'.format([1])", "", "error: could not parse formatting clause: unexpected end of string"},
};

static const struct cel_case lists[] = {
    {"[1, 2, 2, 3].isSorted()", "", "true"},
    {"['b', 'a'].isSorted()", "", "false"},
    {"[].isSorted()", "", "true"},
    {"[1, 2, 3].sum()", "", "6"},
    {"[1.5, 2.5].sum()", "", "4"},
    {"[duration('1m'), duration('1s')].sum()", "", "\"61s\""},
    {"[].sum()", "", "0"},
    {"[9223372036854775807, 1].sum()", "", "error: integer overflow"},
    {"[3, 1, 2].min()", "", "1"},
    {"['b', 'c', 'a'].max()", "", "\"c\""},
    {"[].min()", "", "error: min called on empty list"},
    {"[1, 2, 2].indexOf(2)", "", "1"},
    {"[1, 2, 2].lastIndexOf(2)", "", "2"},
    {"[1].indexOf(5)", "", "-1"},
    {"[3, 1, 2].sort()", "", "[1,2,3]"},
    {"['b', 'a', 'c'].sort()", "", "[\"a\",\"b\",\"c\"]"},
    {"[1, 2, 1, 2].distinct()", "", "[1,2]"},
    {"[1, 2, 3, 4].slice(1, 3)", "", "[2,3]"},
    {"[1].slice(0, 2)", "", "error: cannot slice(0, 2), list is length 1"},
    {"[1, 2, 3].reverse()", "", "[3,2,1]"},
    {"[[1], [2, 3]].flatten()", "", "[1,2,3]"},
    {"[[[1]], [[2]]].flatten()", "", "[[1],[2]]"},
    {"[[[1]], [[2]]].flatten(2)", "", "[1,2]"},
    {"[1].flatten(-1)", "", "error: level must be non-negative"},
    {"lists.range(3)", "", "[0,1,2]"},
    {"[1, 2].first().value() + [1, 2].last().value()", "", "3"},
    {"[].first().hasValue()", "", "false"},
    {"sets.contains([1, 2, 3], [2, 1])", "", "true"},
    {"sets.contains([1], [1, 2])", "", "false"},
    {"sets.equivalent([1, 1, 2], [2, 1])", "", "true"},
    {"sets.equivalent([1], [1, 2])", "", "false"},
    {"sets.intersects([1, 2], [2, 3])", "", "true"},
    {"sets.intersects([1], [])", "", "false"},
};

static const struct cel_case patterns[] = {
    {"'abc'.matches('^a.c$')", "", "true"},
    {"matches('abc', 'b')", "", "true"},
    {"'abc'.matches(x)", "{'x': '^b'}", "false"},
    {"'abc'.matches(x)", "{'x': '('}",
     "error: error parsing regexp: pattern '(': missing closing parenthesis"},
    {"'abc 123'.find('[0-9]+')", "", "\"123\""},
    {"'abc'.find('[0-9]+')", "", "\"\""},
    {"'ab'.find('a|ab')", "", "\"a\""}, /* the first alternative, as in Go */
    {"'123 abc 456'.findAll('[0-9]+')", "", "[\"123\",\"456\"]"},
    {"'1 2 3'.findAll('[0-9]', 2)", "", "[\"1\",\"2\"]"},
    {"'1 2 3'.findAll('[0-9]', 0)", "", "[]"},
    {"'a\xC3\xA4'.findAll('')", "", "[\"\",\"\",\"\"]"},
    {"'aab'.findAll('a*')", "", "[\"aa\",\"\"]"},
    {"x.find('^(a|aa)+b|^a') == 'a' || true",
     "{'x': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac'}",
     "error: the pattern takes too many steps on this text"},
};

static const struct cel_case urls[] = {
    {"url('https://User:pw@Example.com:80/a b?x=1&y=2&x=3').getHost()", "", "\"Example.com:80\""},
    {"url('HTTPS://example.com:80/path').getScheme()", "", "\"https\""},
    {"url('https://example.com:80/').getHostname()", "", "\"example.com\""},
    {"url('https://example.com:80/').getPort()", "", "\"80\""},
    {"url('https://example.com/').getPort()", "", "\"\""},
    {"url('https://[::1]:80/').getHostname()", "", "\"::1\""},
    {"url('https://[::1]/').getHost()", "", "\"[::1]\""},
    {"url('https://example.com/path with spaces/').getEscapedPath()", "",
     "\"/path%20with%20spaces/\""},
    {"url('https://e.com/p?k=a+b%21&k=c&l').getQuery()", "",
     "{\"k\":[\"a b!\",\"c\"],\"l\":[\"\"]}"},
    {"url('/absolute/path').getHost()", "", "\"\""},
    {"isURL('https://example.com')", "", "true"},
    {"isURL('/a')", "", "true"},
    {"isURL('../relative')", "", "false"},
    {"isURL('')", "", "false"},
    {"isURL('https://a:b')", "", "false"},
    {"isURL('https://a/%zz')", "", "false"},
    {"url('https://a/b') == url('https://a/b')", "", "true"},
    {"url('x')", "",
     "error: URL parse error during conversion from string: parse \"x\": invalid "
     "URI for request"},
};

static const struct cel_case addresses[] = {
    {"isIP('127.0.0.1') && isIP('::1')", "", "true"},
    {"isIP('127.0.0.256') || isIP('::ffff:1.2.3.4') || isIP('1.2.3') || isIP('fe80::1%eth0')", "",
     "false"},
    {"string(ip('2001:DB8::0:1'))", "", "\"2001:db8::1\""},
    {"ip.isCanonical('2001:DB8::1')", "", "false"},
    {"ip.isCanonical('10.0.0.1')", "", "true"},
    {"ip('x')", "", "error: IP Address parse error during conversion from string: 'x'"},
    {"ip('10.0.0.1').family() + ip('::1').family()", "", "10"},
    {"ip('0.0.0.0').isUnspecified() && ip('::').isUnspecified()", "", "true"},
    {"ip('127.1.2.3').isLoopback() && ip('::1').isLoopback()", "", "true"},
    {"ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()", "", "true"},
    {"ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()", "", "true"},
    {"ip('10.0.0.1').isGlobalUnicast()", "", "true"},
    {"ip('255.255.255.255').isGlobalUnicast()", "", "false"},
    {"ip('::1') == ip('0:0::1')", "", "true"},
    {"isCIDR('10.0.0.0/8') && isCIDR('::/0')", "", "true"},
    {"isCIDR('10.0.0.0/33') || isCIDR('10.0.0.0') || isCIDR('10.0.0.0/08')", "", "false"},
    {"cidr('192.168.0.0/24').containsIP('192.168.0.1')", "", "true"},
    {"cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))", "", "false"},
    {"cidr('192.168.0.0/23').containsIP('192.168.1.1')", "", "true"},
    {"cidr('192.168.0.0/24').containsCIDR('192.168.0.0/25')", "", "true"},
    {"cidr('192.168.0.0/24').containsCIDR(cidr('192.168.0.0/23'))", "", "false"},
    {"cidr('192.168.0.7/24').prefixLength()", "", "24"},
    {"string(cidr('192.168.0.7/24').masked())", "", "\"192.168.0.0/24\""},
    {"string(cidr('2001:db8::1/17').masked())", "", "\"2001::/17\""},
    {"string(cidr('192.168.0.7/24').ip())", "", "\"192.168.0.7\""},
    {"type(ip('::1')) == net.IP && type(cidr('::/0')) == net.CIDR", "", "true"},
};

static const struct cel_case quantities[] = {
    {"quantity('1.5Gi').isGreaterThan(quantity('1Gi'))", "", "true"},
    {"quantity('500m').isLessThan(quantity('1'))", "", "true"},
    {"quantity('1000m') == quantity('1')", "", "true"},
    {"quantity('1').compareTo(quantity('2'))", "", "-1"},
    {"quantity('50k').add(quantity('20k')).asInteger()", "", "70000"},
    {"quantity('50k').sub(20000)", "", "\"30k\""},
    {"quantity('-5').sign()", "", "-1"},
    {"quantity('1.5').isInteger()", "", "false"},
    {"quantity('1500m').asApproximateFloat()", "", "1.5"},
    {"quantity('1.5').asInteger()", "", "error: cannot convert value to integer"},
    {"isQuantity('1.3Gi') && !isQuantity('1.3 Gi')", "", "true"},
    {"quantity('x')", "",
     "error: quantities must match the regular expression "
     "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
};

static const struct cel_case versions[] = {
    {"semver('1.2.3').isLessThan(semver('1.10.0'))", "", "true"},
    {"semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))", "", "true"},
    {"semver('1.0.0-alpha').isLessThan(semver('1.0.0'))", "", "true"},
    {"semver('1.0.0-1').isLessThan(semver('1.0.0-a'))", "", "true"},
    {"semver('1.0.0-a').isLessThan(semver('1.0.0-a.b'))", "", "true"},
    {"semver('1.0.0+x') == semver('1.0.0+y')", "", "true"},
    {"semver('2.0.0').isGreaterThan(semver('1.9.9'))", "", "true"},
    {"semver('1.2.3').compareTo(semver('1.2.3'))", "", "0"},
    {"semver('1.2.3').major() + semver('1.2.3').minor() + semver('1.2.3').patch()", "", "6"},
    {"isSemver('1.2') || isSemver('v1.2.3') || isSemver('01.2.3') || isSemver('1.2.3-')", "",
     "false"},
    {"semver('v01.2', true).compareTo(semver('1.2.0'))", "", "0"},
    {"semver('x')", "", "error: semver parse error during conversion from string: 'x'"},
};

static const struct cel_case named_formats[] = {
    {"format.dns1123Label().validate('my-name').hasValue()", "", "false"},
    {"format.dns1123Label().validate('My_name').value().size()", "", "1"},
    {"format.dns1123LabelPrefix().validate('my-name-').hasValue()", "", "false"},
    {"format.dns1123Subdomain().validate('a.example.com').hasValue()", "", "false"},
    {"format.dns1035Label().validate('1a').hasValue()", "", "true"},
    {"format.labelValue().validate('').hasValue()", "", "false"},
    {"format.qualifiedName().validate('example.com/Name').hasValue()", "", "false"},
    {"format.qualifiedName().validate('/name').value()", "", "[\"prefix part must be non-empty\"]"},
    {"format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()", "", "false"},
    {"format.uuid().validate('x').value()", "", "[\"does not match the UUID format\"]"},
    {"format.date().validate('2021-02-30').value()", "", "[\"invalid date\"]"},
    {"format.datetime().validate('2021-01-01T00:00:00Z').hasValue()", "", "false"},
    {"format.byte().validate('aGVsbG8=').hasValue()", "", "false"},
    {"format.uri().validate('x').value()", "", "[\"invalid URI for request\"]"},
    {"format.named('dns1123Label').value().validate('a').hasValue()", "", "false"},
    {"format.named('unknown').hasValue()", "", "false"},
};

static const struct cel_case encodings[] = {
    {"base64.encode(b'hello')", "", "\"aGVsbG8=\""},
    {"string(base64.decode('aGVsbG8='))", "", "\"hello\""},
    {"string(base64.decode('aGVsbG8'))", "", "\"hello\""},
    {"base64.decode('#')", "", "error: illegal base64 data"},
    {"jsonpatch.escapeKey('a/b~c')", "", "\"a~1b~0c\""},
};

#define TABLE_TEST(table)                                                                          \
    static void test_##table(void **state)                                                         \
    {                                                                                              \
        cel_rig_check(table, HK_LEN(table));                                                       \
    }

TABLE_TEST(strings)
TABLE_TEST(formats)
TABLE_TEST(lists)
TABLE_TEST(patterns)
TABLE_TEST(urls)
TABLE_TEST(addresses)
TABLE_TEST(quantities)
TABLE_TEST(versions)
TABLE_TEST(named_formats)
TABLE_TEST(encodings)

/* ---- objects of the caller ---- */

/* An authorizer that remembers the chain of calls and allows "get". */
struct chain {
    char said[200];
    bool allowed;
    struct cel_native self;
};

static int chain_call(void *ctx, struct hk_str method, const struct cel_value *args, uint32_t nargs,
                      struct hk_arena *a, struct cel_value *ret, struct hk_err *err)
{
    struct chain *c = ctx;
    const size_t n = strlen(c->said);

    snprintf(c->said + n, sizeof(c->said) - n, "%.*s(%.*s) ", HK_FMT(method),
             HK_FMT(nargs > 0 ? args[0].s : HK_STR("")));
    if (hk_str_is(method, "allowed")) {
        *ret = cel_of_bool(c->allowed);
        return 0;
    }
    if (hk_str_is(method, "reason")) {
        return hk_fail(err, HK_EIO, "no reason given");
    }
    c->allowed = hk_str_is(method, "check") && hk_str_is(args[0].s, "get");
    *ret = cel_of_native(&c->self);
    return 0;
}

static int chain_field(void *ctx, struct hk_str name, struct hk_arena *a, struct cel_value *ret,
                       struct hk_err *err)
{
    if (!hk_str_is(name, "answer")) {
        return -HK_ENOTFOUND;
    }
    *ret = cel_of_int(42);
    return 0;
}

static const struct cel_case natives[] = {
    {"authorizer.group('apps').resource('deployments').namespace('default').check('get').allowed()",
     "group(apps) resource(deployments) namespace(default) check(get) allowed() ", "true"},
    {"authorizer.path('/healthz').check('post').allowed()", "path(/healthz) check(post) allowed() ",
     "false"},
    {"authorizer.path('/').check('get').reason()", "path(/) check(get) reason() ",
     "error: no reason given"},
    {"authorizer.answer", "", "42"},
    {"has(authorizer.other)", "", "false"},
    {"authorizer.other", "", "error: no such key: other"},
};

static void test_objects_of_the_caller_answer_calls_and_fields(void **state)
{
    const struct cel_var var = {HK_STR("authorizer"), cel_type_of(CEL_NATIVE)};
    const struct cel_env env = {.vars = &var, .nvars = 1};

    for (size_t i = 0; i < HK_LEN(natives); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        struct chain c = {.self = {.ctx = &c, .field = chain_field, .call = chain_call}};
        const struct cel_value v = cel_of_native(&c.self);
        cel_rig_eval(natives[i].expr, &env, &v, NULL, &a, &out);
        assert_string_equal(hk_buf_str(&out).s, natives[i].want);
        assert_string_equal(c.said, natives[i].bindings);
    }
}

/* ---- declared types ---- */

static const struct cel_type text_type = {.kind = CEL_STRING}, number_type = {.kind = CEL_DOUBLE};
static const struct cel_type time_type = {.kind = CEL_TIMESTAMP};
static const struct cel_type date_type = {.kind = CEL_TIMESTAMP, .date = true};
static const struct cel_type span_type = {.kind = CEL_DURATION}, bytes_type = {.kind = CEL_BYTES};
static const struct cel_type set_type = {
    .kind = CEL_LIST, .elem = &text_type, .list = CEL_LIST_SET};
static const struct cel_type labels_type = {.kind = CEL_MAP, .elem = &text_type};
static const struct cel_field self_fields[] = {
    {HK_STR("name"), HK_STR("name"), &text_type},
    {HK_STR("number"), HK_STR("number"), &number_type},
    {HK_STR("time"), HK_STR("time"), &time_type},
    {HK_STR("date"), HK_STR("date"), &date_type},
    {HK_STR("span"), HK_STR("span"), &span_type},
    {HK_STR("bytes"), HK_STR("bytes"), &bytes_type},
    {HK_STR("set"), HK_STR("set"), &set_type},
    {HK_STR("labels"), HK_STR("labels"), &labels_type},
    {HK_STR("a__dash__b"), HK_STR("a-b"), &text_type},
};
static const struct cel_type self_type = {
    .kind = CEL_OBJECT, .fields = self_fields, .nfields = HK_LEN(self_fields)};

static const struct cel_case typed[] = {
    {"self.name + 'x'", "{'name': 'n'}", "\"nx\""},
    {"self.number + 0.5", "{'number': 1}", "1.5"},
    {"self.time < timestamp('2027-01-01T00:00:00Z')", "{'time': '2026-01-01T00:00:00Z'}", "true"},
    {"self.date.getFullYear()", "{'date': '2026-01-01'}", "2026"},
    {"self.span > duration('1m')", "{'span': '1h'}", "true"},
    {"self.bytes == b'abc'", "{'bytes': 'YWJj'}", "true"},
    {"self.set == ['b', 'a']", "{'set': ['a', 'b']}", "true"},
    {"self.set + ['b', 'c']", "{'set': ['a', 'b']}", "[\"a\",\"b\",\"c\"]"},
    {"self.labels.all(k, k.size() > 0) && self.labels['a'] == '1'", "{'labels': {'a': '1'}}",
     "true"},
    {"has(self.a__dash__b) && self.a__dash__b == 'y'", "{'a-b': 'y'}", "true"},
    {"self.nome", "{}",
     "refused: ERROR: <input>:1:5: undefined field 'nome'\n | self.nome\n"
     " | ....^"},
    {"has(self.nome)", "{}",
     "refused: ERROR: <input>:1:9: undefined field 'nome'\n | has(self.nome)\n | ........^"},
    {"self.name.x", "{}",
     "refused: ERROR: <input>:1:10: type 'string' does not support field "
     "selection\n | self.name.x\n | .........^"},
    {"self.name > 1", "{}",
     "refused: ERROR: <input>:1:11: found no matching overload for '_>_' "
     "applied to '(string, int)'\n | self.name > 1\n | ..........^"},
    {"1 in self.set", "{}",
     "refused: ERROR: <input>:1:3: found no matching overload for '@in' "
     "applied to '(int, list(string))'\n | 1 in self.set\n | ..^"},
};

static void test_types_are_checked_and_applied(void **state)
{
    const struct cel_var var = {HK_STR("self"), &self_type};
    const struct cel_env env = {.vars = &var, .nvars = 1};

    for (size_t i = 0; i < HK_LEN(typed); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        const struct json doc = json_of_text(typed[i].bindings, &a);
        const struct cel_value v = cel_of_json(&doc, &self_type, &a);
        cel_rig_eval(typed[i].expr, &env, &v, NULL, &a, &out);
        assert_string_equal(hk_buf_str(&out).s, typed[i].want);
    }
}

static void test_the_result_has_the_wanted_type(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct cel_env env = {.result = CEL_BOOL};

    cel_rig_eval("'a'", &env, NULL, NULL, &a, &out);
    assert_string_equal(out.data, "refused: must evaluate to a bool");
    hk_buf_clear(&out);
    cel_rig_eval("dyn('a') == 'a'", &env, NULL, NULL, &a, &out);
    assert_string_equal(out.data, "true");
}

static void test_structs_are_built_where_they_are_declared(void **state)
{
    static const char *const structs[] = {"Object", NULL};
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct cel_env env = {.structs = structs};

    cel_rig_eval("Object{spec: Object.spec{replicas: 1, ?paused: optional.none()}}", &env, NULL,
                 NULL, &a, &out);
    assert_string_equal(out.data, "{\"spec\":{\"replicas\":1}}");
}

/* ---- names of properties ---- */

static const struct {
    const char *property, *want;
} escapes[] = {
    {"name", "name"},
    {"x-prop", "x__dash__prop"},
    {"a.b/c", "a__dot__b__slash__c"},
    {"redact__d", "redact__underscores__d"},
    {"a_b", "a_b"},
    {"namespace", "__namespace__"},
    {"in", "__in__"},
    {"string", "string"},
    {"1a", NULL},
    {"a b", NULL},
    {"", NULL},
};

static void test_property_names_are_escaped(void **state)
{
    for (size_t i = 0; i < HK_LEN(escapes); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        const bool can = cel_escape(hk_str(escapes[i].property), &out);
        assert_string_equal(can ? hk_buf_str(&out).s : "(none)",
                            escapes[i].want ? escapes[i].want : "(none)");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_named_formats),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_objects_of_the_caller_answer_calls_and_fields),
        cmocka_unit_test(test_types_are_checked_and_applied),
        cmocka_unit_test(test_the_result_has_the_wanted_type),
        cmocka_unit_test(test_structs_are_built_where_they_are_declared),
        cmocka_unit_test(test_property_names_are_escaped),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
