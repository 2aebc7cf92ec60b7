"""Whatever a problem or a program says stays as it is in a prompt."""

from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.prompts import render, template_names

texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["{{prompt}}", "{{candidate}}", "{", "}", "{{", "}}", "$", "\\1", "%s", "[user]\n", "[system]\n"]
        )
    ).map("".join),
)


@given(prompt=texts, entry_points=texts, candidate=texts, num_cases=st.integers(min_value=1, max_value=64))
def test_rendering_is_the_template_with_the_values_put_in_once(prompt, entry_points, candidate, num_cases):
    mark_p, mark_c, mark_e = "\ue000", "\ue001", "\ue002"
    values = {mark_p: prompt, mark_c: candidate, mark_e: entry_points}
    for name in template_names():
        filled = render(name, prompt=prompt, entry_points=entry_points, candidate=candidate, num_cases=num_cases)
        marked = render(name, prompt=mark_p, entry_points=mark_e, candidate=mark_c, num_cases=num_cases)
        expected = []
        for message in marked:
            content = "".join(values.get(character, character) for character in message["content"])
            expected.append({"role": message["role"], "content": content})
        assert filled == expected
