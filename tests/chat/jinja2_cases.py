#!/usr/bin/env python3
"""Compares `edgerunner render` with Jinja2 itself on generated templates, or freezes what Jinja2 gives.

  jinja2_cases.py compare PROGRAM [--random N] [--seed S]     every case, and N random ones
  jinja2_cases.py freeze OUT.json                             a sample of the cases, for the tests

Needs the package jinja2 (3.1.2 was used), set up as transformers does."""

import argparse
import copy
import datetime
import itertools
import json
import random
import subprocess
import sys
import tempfile

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
CONTEXT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi  there\n", "n": 1},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a1", "function": {"name": "f", "arguments": {"x": 1.0, "y": [True, None]}}}]},
        {"role": "user", "content": "Zo\u00eb \U0001f600 'quoted' \"double\" <b>&amp;</b>", "n": 3},
    ],
    "s": "Hello, World", "t": "  a\tb c\n", "u": "\u00e4\u00d6\u00df \u4e2d\u6587 \U0001f600", "empty": "",
    "i": 7, "neg": -3, "zero": 0, "f": 2.5, "big": 1e20, "small": 1e-7, "yes": True, "no": False, "nil": None,
    "xs": [3, 1, 2], "words": ["pear", "Apple", "fig", "apple"], "nested": [[1, 2], [3], []], "mixed": [1, "a", None, 2.0, True],
    "d": {"b": 2, "a": 1, "items": "shadow", "C": 3}, "e": {}, "l0": [],
    "people": [{"name": "Bo", "age": 30, "city": {"zip": "1"}}, {"name": "al", "age": 25, "city": {"zip": "2"}}, {"name": "Cy", "age": 30, "city": {"zip": "1"}}],
}


def environment():
    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

        @jinja2.pass_eval_context
        def _body(self, context, caller):
            return caller()

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: NOW.strftime(f)
    return env


ENV = environment()


def reference(template):
    try:
        return {"expected": ENV.from_string(template).render(**copy.deepcopy(CONTEXT))}
    except RecursionError:
        return {"error": "RecursionError"}
    except Exception as error:  # whatever Python raises is an error of the template
        return {"error": type(error).__name__}


VALUES = ["s", "t", "u", "empty", "i", "neg", "zero", "f", "big", "small", "yes", "no", "nil", "xs", "words", "nested",
          "mixed", "d", "e", "l0", "missing", "range(4)", "(1,)", "()", "(1, 'b')", "'7'", "'-1.5e3'", "messages[1]"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = ["abs", "batch(2)|list", "batch(2, 'x')|list", "capitalize", "center(20)", "count", "default('D')", "d('D', true)",
           "dictsort", "dictsort(true)", "dictsort(false, 'value')", "dictsort(reverse=true)", "e", "escape|e", "filesizeformat",
           "filesizeformat(true)", "first", "float", "float(1.5)", "forceescape", "indent", "indent(2, true)",
           "indent('> ', blank=true)", "int", "int(9)", "int(base=16)", "items|list", "join", "join(', ')", "last", "length", "list",
           "lower", "map('string')|list", "map('upper')|join(',')", "max", "min", "reject|list", "reject('string')|list",
           "replace('l', 'L')", "replace('', '-')", "replace('l', 'L', 1)", "reverse|list", "reverse|string|length", "round", "round(1)",
           "round(1, 'floor')", "round(0, 'ceil')", "round(-1)", "safe", "select|list", "select('string')|list",
           "select('greaterthan', 1)|list", "slice(2)|list", "slice(2, 'z')|list", "sort", "sort(reverse=true)",
           "sort(case_sensitive=true)", "string", "striptags", "sum", "sum(start=10)", "title", "tojson", "tojson(indent=2)",
           "tojson(ensure_ascii=true)", "tojson(separators=(',', ':'))", "tojson(sort_keys=true)", "trim", "trim('Hd')", "truncate(9)",
           "truncate(9, true)", "truncate(9, false, '..', 0)", "unique|list", "unique(true)|list", "upper", "urlencode", "wordcount",
           "wordwrap(5)", "xmlattr", "format", "groupby(0)|list", "attr('upper')", "nosuchfilter", "map", "first|default('none')"]
TESTS = ["boolean", "callable", "defined", "divisibleby 3", "divisibleby(2)", "eq 7", "equalto('a')", "even", "odd", "false", "filter",
         "float", "ge 2", "gt 2", "in [7, 2.5, none]", "integer", "iterable", "le 2", "lower", "lt 2", "mapping", "ne 1", "none",
         "number", "sameas none", "sameas true", "sequence", "string", "test", "true", "undefined", "upper", "not defined", "escaped", "nosuchtest"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "casefold()", "strip()", "lstrip()", "rstrip()", "strip('H d')",
           "split()", "split(',')", "split(' ', 1)", "split(maxsplit=1)", "rsplit(' ', 1)", "rsplit(none, 1)", "splitlines()",
           "splitlines(true)", "startswith('He')", "startswith(('x', 'H'))", "endswith('ld')", "endswith('o', 0, 5)", "find('o')",
           "find('o', 5)", "find('o', -4, -1)", "rfind('o')", "index('l')", "rindex('q')", "count('l')", "count('')", "replace('l', '')",
           "replace('l', 'LL', 2)", "join(words)", "join(xs)", "center(16, '*')", "center(15)", "ljust(15, '.')", "rjust(15)", "zfill(15)",
           "partition(',')", "rpartition('o')", "partition('q')", "removeprefix('He')", "removesuffix('ld')", "expandtabs(4)", "isalpha()",
           "isdigit()", "isalnum()", "isspace()", "isupper()", "islower()", "istitle()", "isidentifier()", "isascii()", "isnumeric()",
           "isdecimal()", "isprintable()", "nosuch()", "format(1)", "upper", "nosuch", "get('a')", "get('q', 5)", "items()", "keys()",
           "values()", "keys()|list", "values()|sum", "copy()", "append(1)", "update({})", "pop()", "index(1)", "count(1)", "clear()",
           "is_integer()", "bit_length()", "__class__", "__class__.__name__"]
INDICES = ["0", "-1", "5", "1:", ":-1", "::-1", "1:3", "::2", "-2:", "3:0:-1", "'a'", "'items'", "'nosuch'", "none", "1.0", "true", "::0", "'upper'"]
FORMATS = ["'%s|%r'|format(s, s)", "'%5d|%-5d|%05d'|format(i, neg, neg)", "'%.2f|%8.3f|%e|%g'|format(f, f, big, small)", "'%x|%X|%o|%#x'|format(255, 255, 8, 255)",
           "'%(a)s %(b)d'|format(a=s, b=i)", "'%(a)s' % d", "'%s' % s", "'%s %s' % (i, f)", "'%d' % s", "'%s'|format", "'%c%c'|format(65, 'z')", "'%%'|format",
           "'%+d % d'|format(i, i)", "'%10.3s|'|format(s)", "'%-10s|'|format(s)", "'%*d'|format(6, i)", "'%s %s' % s", "'%i' % f", "'x' % 1", "'x' % d",
           "'{} {}'.format(i, s)", "'{0}{1}{0}'.format(1, 2)", "'{a}-{b}'.format(a=1, b='x')", "'{:>10}|{:<6}|{:^7}|'.format(s[:3], i, f)",
           "'{:05d} {:+d} {:,} {:x} {:#b}'.format(i, i, 1234567, 255, 5)", "'{:.2f} {:e} {:g} {:%}'.format(f, f, f, f)", "'{!r} {!s}'.format(s, s)",
           "'{d[a]} {p.x}'.format(d=d, p=d)", "'{{}} {}'.format(1)", "'{:*^9}'.format('mid')", "'{:{w}}|'.format(i, w=5)", "'{'.format(1)", "'{}'.format()",
           "'{:d}'.format(s)", "'{:.3}'.format(s)", "'{:.3}'.format(f)", "'{:010.2f}'.format(neg * 1.5)", "'{a}'.format_map(d)", "'{:s}'.format(i)", "'{:_}'.format(1234567)",
           "'{} {}'.format(xs, nil)", "'{:5}|'.format(yes)", "'{:5}|'.format(nil)"]

STATEMENTS = r"""
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}
{% for x in xs if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ loop.previtem }}{{ loop.nextitem }} {% else %}none{% endfor %}
{% for x in [] %}a{% else %}empty{% endfor %}|{% for x in missing %}a{% else %}undefined{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}|{% for k in d %}{{ k }}{% endfor %}
{% for a, b in [[1, 2], (3, 4)] %}{{ a + b }} {% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}|{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}E{% endfor %}
{% for x in xs %}{% break %}{% else %}E{% endfor %}|{% for x in xs %}{% continue %}{% else %}E{% endfor %}
{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }} {% endfor %}|{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for x in nested recursive %}{% if x is iterable %}[{{ loop(x) }}]{% else %}{{ x }}@{{ loop.depth }}{{ loop.depth0 }}{% endif %}{% endfor %}
{% for x in xs %}{{ loop(x) }}{% endfor %}
{% for x in xs %}{% for y in xs %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}
{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(n=0, s='') %}{% for i in xs %}{% set ns.n = ns.n + i %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.n }}{{ ns.s }}{{ ns.missing }}{{ ns }}
{% set d.a = 5 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}
{% set a, b = [1] %}
{% set x %}block {{ i }}{% endset %}[{{ x }}]{% set y | upper | replace('B', 'c') %}block{% endset %}{{ y }}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(b=5, a=1) }}|{{ m() }}|{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.caller }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}|{{ m() }}
{% macro m(a) %}x{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}x{% endmacro %}{{ m(q=2) }}
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ i }}{% endcall %}{{ m() }}
{% macro m() %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(a, b) m() %}({{ a }}-{{ b }}){% endcall %}
{% macro m(caller=none) %}{{ caller is none }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% macro m() %}no caller{% endmacro %}{% call m() %}x{% endcall %}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}
{% macro m() %}{{ later }}{% endmacro %}{% set later = 'set' %}{{ m() }}
{% macro m() %}{% set s = 'inner' %}{{ s }}{% endmacro %}{{ m() }}{{ s }}
{% if nil %}a{% elif zero %}b{% elif f %}c{% else %}d{% endif %}{% if missing %}x{% endif %}{% if not missing %}y{% endif %}
{% with a = 1, b = i %}{{ a }}{{ b }}{% set a = 9 %}{{ a }}{% endwith %}{{ a }}|{% with %}{{ i }}{% endwith %}
{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b') | trim %} aa {% endfilter %}
{% raw %}{{ not }} {% parsed %}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  y
{# comment #}a{#- strip -#}  b {#+ keep #}
  {% if yes %}
    indented
  {% endif %}
after
  {%+ if yes %}kept{% endif +%}
x
{{ 1 }}
{{- 2 -}}  3 {%- if yes -%} 4 {%- endif -%} 5
{% generation %}gen {{ i }}{% endgeneration %}{% generation %}{% set q = 1 %}{% endgeneration %}{{ q }}
{% block b %}in block {{ s }}{% endblock %}{{ self.b() }}
{% print i, s %}
{{ cycler('a', 'b').next() }}{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}
{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}c
{{ dict(a=1, b=2) }}{{ dict([('x', 1)], y=2) }}{{ dict({'q': 1}) }}{{ namespace({'a': 3}).a }}
{{ range(3)|list }}{{ range(1, 4)|list }}{{ range(5, 0, -2)|list }}{{ range(3) }}{{ range(0, 6, 2) }}{{ range(3)[1] }}{{ range(3)[::-1]|list }}{{ range(100001)|length }}
{{ 'a' if yes }}{{ 'a' if no }}{{ 'a' if no else 'b' }}{{ 1 if no else 2 if no else 3 }}{{ (1 if no) is undefined }}
{{ [1, 2,][0] }}{{ {'a': 1,}['a'] }}{{ (1, 2)[1] }}{{ [] }}{{ {} }}{{ (1,) }}{{ 'a' 'b' "c" }}
{{ {1: 'a', 1.0: 'b', true: 'c'} }}{{ {none: 1, (1, 2): 2}[(1, 2)] }}{{ {[1]: 2} }}
{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 1 == 1.0 == true }}{{ 'a' in 'abc' not in [] }}{{ not 1 == 2 }}{{ not not i }}
{{ 2 ** 3 ** 2 }}{{ -2 ** 2 }}{{ 7 // 2 }}{{ -7 // 2 }}{{ -7 % 3 }}{{ 7 % -3 }}{{ 7.5 // 2 }}{{ -7.5 % 2 }}{{ 1 / 3 }}{{ 2 ** -1 }}{{ 2 ** 0.5 }}
{{ 0x1F }}{{ 0b101 }}{{ 0o17 }}{{ 1_000 }}{{ 1.5e3 }}{{ 1e5 }}{{ 1E-3 }}{{ 1_0.2_5 }}{{ .5 }}
{{ "a\nb\t\\\"\x41\u00e9\U0001f600\101\q" }}{{ 'it''s' }}{{ "\
x" }}
{{ 1 if }}
{{ foo(1 }}
{% for %}{% endfor %}
{% if yes %}
{% endfor %}
{% unknown %}
{{ a b }}
{{ 'unclosed }}
{{ [1, 2 }}
{% set 1 = 2 %}
{% set loop = 1 %}{{ loop }}
{% for loop in xs %}{% endfor %}
{% break %}
{{ 1 | }}
{{ x is }}
{{ f(a=1, 2) }}
{{ dict(**{'a': 1}) }}{{ dict(*[[('a', 2)]]) }}{{ dict(a=1, **{'a': 2}) }}
{{ raise_exception('stop: ' ~ i) }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %d %b %j %p %I %y %%') }}
{% include 'x' %}
{% extends 'x' %}
{% import 'x' as y %}
{% if no %}{% include 'x' %}{% endif %}ok
{% if no %}{{ s | nosuchfilter }}{{ s is nosuchtest }}{% endif %}ok
{{ s if yes else s | nosuchfilter }}
{% for x in [] %}{{ x | nosuchfilter }}{% endfor %}
{{ messages | map(attribute='role') | join(',') }}|{{ messages | map(attribute='n', default=0) | list }}|{{ messages | selectattr('n') | list | length }}
{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }}|{{ messages | rejectattr('role', 'in', ['user']) | list | length }}
{{ people | sort(attribute='age') | map(attribute='name') | join }}{{ people | sort(attribute='age,name') | map(attribute='name') | join }}{{ people | sort(attribute='city.zip', reverse=true) | map(attribute='name') | join }}
{% for age, group in people | groupby('age') %}{{ age }}:{{ group | map(attribute='name') | join(',') }};{% endfor %}{{ (people | groupby('city.zip'))[0].grouper }}{{ people | groupby('x', default='q') }}
{{ people | sum(attribute='age') }}{{ people | max(attribute='age') }}{{ people | map('attr', 'age') | list }}{{ people | unique(attribute='age') | map(attribute='name') | list }}
{{ xs | map('string') | map('int') | sum }}{% set g = xs | map('string') %}{{ g | list }}{{ g | list }}{{ (xs | select)[0] }}
{{ xs | map('upper') | length }}
{{ xs | map('upper') | tojson }}
{{ d.items }}{{ d['items'] }}
{{ d.items() | list }}{{ d['items'] }}{{ d.a }}{{ d.nosuch }}{{ d.nosuch is defined }}{{ e.x.y is defined }}
{{ missing.x }}
{{ missing['x'] }}
{{ missing() }}
{{ missing + 1 }}
{{ missing ~ 'x' }}{{ missing | length }}{{ missing | list }}{{ missing == missing2 }}{{ missing | default('z') }}{{ [missing] }}{{ missing | tojson }}
{{ nil.x }}{{ i.x }}{{ s.x }}{{ nil.x.y }}
{{ s[0] }}{{ s[-1] }}{{ s[100] }}{{ u[0] }}{{ u[-1] }}{{ u[1:4] }}{{ u[::-1] }}{{ u | length }}{{ s['upper']() }}
{{ messages[-1].content | tojson }}{{ messages[-1] }}{{ messages[2] | tojson(indent=4) }}
{{ [1.0, 1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 0.1, -0.0, 1e22, 5e-324] }}{{ [1e400, -1e400] }}
{{ "tab\there 'q' \\ \x07 \u00a0 \u2028 \u00e9 \U0001f600" | list }}{{ ["it's", 'say "x"', 'both\'"'] }}
{{ true }}{{ True }}{{ none }}{{ None }}{{ [true, none] }}{{ 'a' * 3 }}{{ [1] * 2 }}{{ (1,) + (2,) }}{{ [1] + [2] }}{{ 3 * 'ab' }}{{ 'a' * -1 }}
{{ '<a>' | safe ~ '<b>' }}{{ ('<a>' | safe) + '<b>' }}{{ ('<a>' | e) + '<b>' }}{{ '<' | e | e }}{{ '<' | forceescape | forceescape }}{{ ('a' | safe) is escaped }}
{{ s is string and s is not number }}{{ i is number is true }}
{{ xs is sequence }}{{ i is divisibleby 7 and f is float }}{{ 1 is in [1, 2] }}{{ 3 is not in [1] }}
{{ [xs, words] | map('first') | list }}{{ [[1, 2], [3]] | map('sum') | list }}{{ nested | sum(start=[]) }}{{ ['a', 'b'] | map('replace', 'a', 'z') | join }}
{{ 5 | round }}{{ 2.5 | round }}{{ 3.5 | round }}{{ 2.675 | round(2) }}{{ -2.5 | round }}{{ 1234.5 | round(-2) }}{{ 1250 | round(-2) }}
{{ ' 42 ' | int }}{{ '42.9' | int }}{{ '0x1f' | int(base=16) }}{{ 'x' | int(-1) }}{{ '1_000' | int }}{{ nil | int }}{{ '1e3' | float }}{{ 'inf' | float }}{{ '' | float }}
{{ lipsum is defined }}{{ range is callable }}{{ dict is callable }}{{ s.upper is callable }}
{{ xs.append(4) }}
{{ d.update({'z': 1}) }}
{{ s.__class__ }}|{{ d.__len__ is defined }}{{ s.__class__.x }}
{{ xs.pop() }}{{ xs }}
{{ loop }}{% for x in xs %}{{ loop }}{% endfor %}
{% for x in xs -%}
  {{ x }}
{%- endfor %}

{% for c in 'añ😀' %}{{ c }},{% endfor %}{% for x in i %}{% endfor %}
{{ {'a': {'b': [1, {'c': none}]}} | tojson(indent=2) }}{{ [] | tojson(indent=2) }}{{ {} | tojson(indent=0) }}{{ 'ä\u2028</' | tojson }}{{ {1: 2, true: 3, none: 4} | tojson }}
{{ (1, 2) | tojson }}{{ 'x' | tojson | length }}{{ [1, 2] | tojson(indent='--') }}{{ 1e100 | tojson }}{{ 3.0 | tojson }}
{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a b c'.split(' ', 1) }}{{ ''.split() }}{{ ''.split(',') }}{{ 'abc'.split('') }}
{{ "one two-three four_five" | title }}{{ "they're bill's" | title }}{{ "they're bill's".title() }}
{{ 'foo bar baz qux' | truncate(9) }}|{{ 'foo bar baz qux' | truncate(9, True) }}|{{ 'foo bar baz qux' | truncate(11) }}|{{ 'foo bar baz qux' | truncate(11, False, '...', 0) }}
{{ 'the quick brown fox jumps' | wordwrap(10) }}|{{ 'abcdefghijklm no' | wordwrap(5) }}|{{ 'abcdefghijklm no' | wordwrap(5, false) }}|{{ 'a b c' | wordwrap(3, wrapstring='/') }}
{{ 'x' is filter }}{{ 'upper' is filter }}{{ 'odd' is test }}{{ 'equalto' is test }}
{{ xs | first }}{{ xs | last }}{{ '' | first }}{{ [] | last }}{{ d | first }}{{ xs | random is defined }}
{% if messages[0].role == 'system' and messages | length > 1 -%} ok {%- endif %}
{%- for m in messages %}{{ '<|' + m['role'] + '|>' }}{% if m.content is string %}{{ m.content | trim }}{% elif m.tool_calls %}{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}{% endif %}{% endfor %}
{{ [1,2,3][missing:] }}{{ 'abc'[:none] }}{{ xs['a'] }}{{ xs[1.5] }}
{{ d == {'a': 1, 'b': 2, 'items': 'shadow', 'C': 3} }}{{ [1, [2]] == [1, [2]] }}{{ (1, 2) == [1, 2] }}{{ [1, 2] < [1, 3] }}{{ 'a' < 'b' }}{{ 1 < 'a' }}
{{ loop is defined }}{{ caller is defined }}{{ self is defined }}{{ varargs }}
{{ s|upper|lower|title }}{{ (s|upper)[0] }}{{ -i|abs }}{{ (-i)|abs }}{{ i + neg|abs }}{{ not s|length > 3 }}
{{ xs|sort|reverse|join('-') }}{{ words|sort }}{{ words|sort(case_sensitive=true) }}{{ words|unique|list }}{{ mixed|sort }}
{% set x = xs if yes else [] %}{{ x }}{% set y = x[0], x[1] %}{{ y }}{% set z = not x %}{{ z }}
{% for i in range(2) %}{% for j in range(2) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}
{%for x in xs%}{{x}}{%endfor%}{%if yes%}{%endif%}{{[1,2]|join}}{{{'a':1}.a}}{{{}|length}}
""".strip("\n").split("\n")


def templates():
    for value in VALUES:
        yield "{{ %s }}" % value
        for name in FILTERS:
            yield "{{ %s|%s }}" % (value, name)
        for name in TESTS:
            yield "{{ %s is %s }}" % (value, name)
        for index in INDICES:
            yield "{{ (%s)[%s] }}" % (value, index)
        for method in METHODS:
            yield "{{ (%s).%s }}" % (value, method)
    for left, op, right in itertools.product(VALUES, OPERATORS, VALUES):
        yield "{{ %s %s %s }}" % (left, op, right)
    for expression in FORMATS:
        yield "{{ %s }}" % expression
    yield from STATEMENTS
    for size in (2, 3, 5):  # whitespace between lines, where trim_blocks and lstrip_blocks act
        for i in range(len(STATEMENTS) - size):
            yield "\n".join(STATEMENTS[i:i + size])


def random_expression(rng, depth):
    if depth == 0:
        return rng.choice(VALUES)
    inner = lambda: random_expression(rng, depth - 1)
    return rng.choice([
        lambda: "(%s %s %s)" % (inner(), rng.choice(OPERATORS), inner()),
        lambda: "%s|%s" % (inner(), rng.choice(FILTERS)),
        lambda: "(%s)|%s" % (inner(), rng.choice(FILTERS)),
        lambda: "(%s is %s)" % (inner(), rng.choice(TESTS)),
        lambda: "(%s)[%s]" % (inner(), rng.choice(INDICES)),
        lambda: "(%s).%s" % (inner(), rng.choice(METHODS)),
        lambda: "(%s if %s else %s)" % (inner(), inner(), inner()),
        lambda: "[%s, %s]" % (inner(), inner()),
        lambda: "{'k': %s}" % inner(),
    ])()


def random_template(rng):
    tag = lambda text: "{%" + rng.choice(["", "", "-", "+"]) + " " + text + " " + rng.choice(["", "", "-"]) + "%}"
    space = lambda: rng.choice(["", " ", "\n", "  \n", "\n  ", " x ", "\n\n"])
    expression = lambda: random_expression(rng, rng.choice([0, 1, 1, 2, 3]))
    shape = rng.choice(["print", "if", "for", "set", "macro"])
    body = space() + "{{" + rng.choice(["", "-"]) + " " + expression() + " " + rng.choice(["", "-"]) + "}}" + space()
    if shape == "if":
        return space() + tag("if " + expression()) + body + tag("else") + space() + tag("endif") + space()
    if shape == "for":
        return space() + tag("for x in " + expression()) + body + "{{ x }}{{ loop.last }}" + tag("endfor") + space()
    if shape == "set":
        return tag("set v = " + expression()) + body + "{{ v }}"
    if shape == "macro":
        return tag("macro m(a, b=%s)" % expression()) + body + "{{ a }}" + tag("endmacro") + space() + "{{ m(%s) }}" % expression()
    return body


def unpredictable(outcome):
    text = outcome.get("expected", "")
    return " at 0x" in text or " object" in text and "<" in text


def compare(program, count, seed):
    rng = random.Random(seed)
    cases = list(dict.fromkeys(templates())) if count == 0 else [random_template(rng) for _ in range(count)]
    differing = unsupported = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        context, source = folder + "/context.json", folder + "/template.jinja"
        with open(context, "w") as file:
            json.dump(CONTEXT, file)
        for template in cases:
            wanted = reference(template)
            if unpredictable(wanted):
                skipped += 1
                continue
            with open(source, "w", newline="") as file:
                file.write(template)
            run = subprocess.run([program, "render", "--template", source, "--messages", context,
                                  "--now", NOW.isoformat()], capture_output=True)
            got = {"expected": run.stdout.decode()} if run.returncode == 0 else {"error": run.stderr.decode().strip()}
            if run.returncode not in (0, 1):
                got["error"] = "STATUS %d" % run.returncode
            same = run.returncode in (0, 1) and (got == wanted if "expected" in wanted else "error" in got)
            if same:
                continue
            if run.returncode == 1 and "not supported: " in got["error"]:
                unsupported += 1
                continue
            differing += 1
            print("TEMPLATE %r\n  WANT %s\n  GOT  %s" % (template, wanted, got))
    print("%d templates: %d differ, %d unsupported, %d without one outcome" % (len(cases), differing, unsupported, skipped))
    return differing


def freeze(path):
    rng = random.Random(1)
    cases = list(dict.fromkeys(templates()))
    kept = [t for t in cases if t in STATEMENTS or t[3:-3] in FORMATS]
    kept += rng.sample([t for t in cases if t not in kept and "\n" not in t], 600)
    frozen = []
    for template in kept:
        outcome = reference(template)
        if not unpredictable(outcome):
            frozen.append({"template": template, **outcome})
    with open(path, "w") as file:
        json.dump({"reference": "Jinja2 " + jinja2.__version__, "context": CONTEXT, "cases": []}, file)
        file.seek(file.tell() - 2)
        file.write("\n" + ",\n".join(json.dumps(case) for case in frozen) + "\n]}\n")
    print("%d cases in %s" % (len(frozen), path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    comparing = commands.add_parser("compare")
    comparing.add_argument("program")
    comparing.add_argument("--random", type=int, default=0)
    comparing.add_argument("--seed", type=int, default=0)
    commands.add_parser("freeze").add_argument("out")
    arguments = parser.parse_args()
    if arguments.command == "freeze":
        freeze(arguments.out)
        return 0
    return 1 if compare(arguments.program, arguments.random, arguments.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
