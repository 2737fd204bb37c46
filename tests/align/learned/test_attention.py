import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from text2grad.align.learned.attention import VIEWS, AttentionScorer, _Parts, _views
from text2grad.text.whitespace import split_words

ANSWER = "The boy died."


@pytest.fixture(scope="module")
def scorer(tiny_model):
    model = AutoModelForCausalLM.from_pretrained(tiny_model).eval()
    return AttentionScorer(model, AutoTokenizer.from_pretrained(tiny_model))


def test_views_of_one_head_by_hand():
    # tokens: 0 source, 1 the word's first copy, 2 and 3 the comment, 4 its second copy
    weights = torch.zeros(1, 5, 5)
    weights[0, 4] = torch.tensor([0.1, 0.2, 0.3, 0.15, 0.25])
    weights[0, 2, 1], weights[0, 3, 1] = 0.6, 0.3
    text = _Parts(ids=[0] * 5, source=slice(0, 1), comment=slice(2, 4), first=[[1]], second=[[4]])
    assert _views(weights, text)[0, 0].tolist() == pytest.approx([0.45, 0.3, 0.6, 0.9, 0.1, 0.2])


def test_one_row_per_word_and_one_column_per_head_and_view(scorer):
    features = scorer.read("Not a boy.", ANSWER, "A girl died.", split_words(ANSWER))
    layers, heads = scorer.model.config.num_hidden_layers, scorer.model.config.num_attention_heads
    assert features.shape == (3, layers * heads * VIEWS)
    assert np.isfinite(features).all()


def test_without_a_source_nothing_attends_to_it(scorer):
    features = scorer.read("Not a boy.", ANSWER, None, split_words(ANSWER)).reshape(3, -1, VIEWS)
    assert features[:, :, 4] == pytest.approx(np.log(1e-3))


def test_words_own_the_tokens_that_overlap_them(scorer):
    text = scorer._compose("Not a boy.", ANSWER, "A girl died.", split_words(ANSWER))
    spelt = ["".join(scorer.tokenizer.decode([text.ids[i]]) for i in tokens).strip() for tokens in text.first]
    assert spelt == ["The", "boy", "died."]
    assert [len(tokens) for tokens in text.second] == [len(tokens) for tokens in text.first]
    assert text.second[0][0] > text.comment.stop > text.first[-1][-1]


def test_the_model_is_left_as_it_was(scorer):
    before = scorer.model.config._attn_implementation
    scorer.read("Not a boy.", ANSWER, None, split_words(ANSWER))
    assert scorer.model.config._attn_implementation == before
    assert not any(module._forward_hooks for module in scorer.model.modules())


def test_a_text_too_long_is_not_read(scorer):
    long = "word " * 600
    assert scorer.read("Wrong.", long, None, split_words(long)) is None
