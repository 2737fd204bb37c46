import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from text2grad.align.learned.attention_features import (
    NUM_VIEWS,
    AttentionScorer,
    _attention_views,
    _Layout,
    select_relevant_sentences,
)
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
    layout = _Layout(ids=[0] * 5, source=slice(0, 1), comment=slice(2, 4), first=[[1]], second=[[4]])
    assert _attention_views(weights, layout)[0, 0].tolist() == pytest.approx([0.45, 0.3, 0.6, 0.9, 0.1, 0.2])


def test_one_row_per_word_and_one_column_per_head_and_view(scorer):
    features = scorer.score_words("Not a boy.", ANSWER, "A girl died.", split_words(ANSWER))
    layers, heads = scorer.model.config.num_hidden_layers, scorer.model.config.num_attention_heads
    assert features.shape == (3, layers * heads * NUM_VIEWS)
    assert np.isfinite(features).all()


def test_without_a_source_nothing_attends_to_it(scorer):
    features = scorer.score_words("Not a boy.", ANSWER, None, split_words(ANSWER)).reshape(3, -1, NUM_VIEWS)
    assert features[:, :, 4] == pytest.approx(np.log(1e-3))


def test_words_own_the_tokens_that_overlap_them(scorer):
    layout = scorer._compose("Not a boy.", ANSWER, "A girl died.", split_words(ANSWER))
    spelt = ["".join(scorer.tokenizer.decode([layout.ids[i]]) for i in tokens).strip() for tokens in layout.first]
    assert spelt == ["The", "boy", "died."]
    assert [len(tokens) for tokens in layout.second] == [len(tokens) for tokens in layout.first]
    assert layout.second[0][0] > layout.comment.stop > layout.first[-1][-1]


def test_the_model_is_restored(scorer):
    before = scorer.model.config._attn_implementation
    scorer.score_words("Not a boy.", ANSWER, None, split_words(ANSWER))
    assert scorer.model.config._attn_implementation == before
    assert not any(module._forward_hooks for module in scorer.model.modules())


def test_a_text_too_long_has_no_features(scorer):
    long = "word " * 600
    assert scorer.score_words("Wrong.", long, None, split_words(long)) is None


SOURCE = "The mayor spoke. Rail workers went on strike in Leeds. It rained. The strike lasted a week!"


def test_the_sentences_that_share_most_stay_in_their_order():
    assert select_relevant_sentences(SOURCE, "a week of strikes in Leeds", 12) == (
        "Rail workers went on strike in Leeds. The strike lasted a week!"
    )


def test_the_best_sentence_stays_even_if_it_is_too_long():
    assert select_relevant_sentences(SOURCE, "workers in Leeds on strike", 1) == "Rail workers went on strike in Leeds."


def test_a_short_source_is_kept_whole():
    assert select_relevant_sentences(SOURCE, "nothing shared", 100) == SOURCE


def test_an_empty_source():
    assert select_relevant_sentences("", "anything", 10) == ""
