from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.slurm.hostlist import compress, expand
from collector.slurm.refusal import MalformedError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gn01", ["gn01"]),
        ("gn[01-03,07]", ["gn01", "gn02", "gn03", "gn07"]),
        ("gn[8-11]", ["gn8", "gn9", "gn10", "gn11"]),
        ("gn[08-11]", ["gn08", "gn09", "gn10", "gn11"]),
        ("n[0000-0002]", ["n0000", "n0001", "n0002"]),
        ("rack[0-1]_blade[1-2]", ["rack0_blade1", "rack0_blade2", "rack1_blade1", "rack1_blade2"]),
        ("a1,b[1-2]-ib,c.example.org", ["a1", "b1-ib", "b2-ib", "c.example.org"]),
        ("n1,n[1-2]", ["n1", "n2"]),
        ("None assigned", []),
        ("(null)", []),
        ("", []),
    ],
)
def test_names_come_out_in_order_once_and_with_their_zeros(text, names):
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    [
        *("n[1-2", "n1-2]", "n[2-1]", "n[a-b]", "n[]", "n[1--2]", "n[[1]]", "a,,b", "a,", ","),
        *("n[1 2]", "two words", "n[-1]", "n[1-2]]", "n[٣]"),
    ],
)
def test_a_broken_list_is_malformed(text):
    with pytest.raises(MalformedError, match="hostlist"):
        expand(text)


@pytest.mark.parametrize(
    "text",
    [
        *("n[0-99999999999999999]", "a[0-999]b[0-999]", "n[1-99999999999999999999]"),
        "x[0-9][0-9][0-9][0-9][0-9][0-9]",
    ],
)
def test_a_list_that_would_blow_up_is_refused_at_once(text):
    with pytest.raises(MalformedError):
        expand(text)


names = st.lists(
    st.builds(
        lambda stem, number, width, end: f"{stem}{number:0{width}d}{end}",
        st.sampled_from(["gn", "rack1_n", "a.b-", "n0x"]),
        st.integers(0, 12_000),
        st.integers(1, 5),
        st.sampled_from(["", "-ib", "x7"]),
    ),
    unique=True,
    max_size=60,
)


@given(names)
def test_compressing_and_expanding_gives_the_same_names(hosts):
    assert sorted(expand(compress(hosts))) == sorted(hosts)


@given(st.text(alphabet="gn0123456789[]-,._ ", max_size=40))
def test_any_text_either_expands_to_clean_names_or_is_malformed(text):
    try:
        hosts = expand(text)
    except MalformedError:
        return
    assert len(hosts) == len(set(hosts))
    assert not any(set(host) & set("[], ") for host in hosts)
