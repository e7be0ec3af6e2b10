"""Names beside bubbles keep off each other."""

from __future__ import annotations

from dashboard.charts.labels import sides


def test_a_lone_bubble_has_its_name_at_the_right():
    assert sides([(0.3, 0.5, 0.04)], ["language"]) == ["middle right"]


def test_a_bubble_at_the_right_end_has_its_name_elsewhere():
    assert sides([(0.95, 0.5, 0.04)], ["speech · T4"]) != ["middle right"]


def test_two_bubbles_on_one_spot_have_their_names_on_two_sides():
    first, second = sides([(0.6, 0.8, 0.04), (0.61, 0.8, 0.04)], ["research", "vision"])
    assert first != second


def test_where_no_side_is_free_a_name_is_shown_all_the_same():
    crowd = [(0.5, 0.5, 0.04)] * 9
    assert len(sides(crowd, ["a long name of a team"] * 9)) == 9


def test_names_of_bubbles_inside_each_other_do_not_lie_on_each_other():
    first, second = sides(
        [(0.6, 0.8, 0.045), (0.6, 0.8, 0.04)], ["research · A100", "vision · A100"]
    )
    assert first != second


def test_a_name_keeps_off_the_bubble_below_which_is_taller_in_shares_of_the_plot():
    # A third of the height away: free beside, but not under the upper bubble.
    places = [(0.5, 0.62, 0.045), (0.5, 0.45, 0.045), (0.62, 0.62, 0.045)]
    chosen = sides(places, ["a", "b", "c"])
    assert chosen[0] != "bottom center"
