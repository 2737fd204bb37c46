from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import gradcheck

from text2grad.models.logprobs import chunked_logprobs, logprob_chunk_size


def plain(hidden: torch.Tensor, head: torch.nn.Linear, targets: torch.Tensor, temperature: float) -> torch.Tensor:
    return torch.log_softmax(head(hidden).float() / temperature, -1)[torch.arange(len(targets)), targets]


def test_chunks_give_the_values_and_gradients_of_the_whole() -> None:
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 50)
    targets = torch.randint(50, (11,))
    gradients = []
    for score in (
        lambda h: plain(h, head, targets, 0.7),
        lambda h: chunked_logprobs(h, head, targets, 0.7, chunk_size=4)[0],
    ):
        hidden = torch.linspace(-1, 1, 88).reshape(11, 8).requires_grad_()
        head.zero_grad()
        logprobs = score(hidden)
        (logprobs * torch.arange(11)).sum().backward()
        gradients.append((logprobs.detach(), hidden.grad, head.weight.grad))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_are_right_in_double_precision_and_so_are_those_of_the_plain_path() -> None:
    generator = torch.Generator().manual_seed(0)
    targets = torch.tensor([0, 4, 4, 2, 1])

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.double, requires_grad=True)

    def chunked(hidden: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        return chunked_logprobs(hidden, lambda h: h @ weight.T + bias, targets, 0.7, 2, entropy_gradient=True)

    def whole(hidden: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        logprobs = torch.log_softmax((hidden @ weight.T + bias) / 0.7, -1)
        return logprobs[torch.arange(5), targets], torch.distributions.Categorical(logits=logprobs).entropy()

    inputs = (random(5, 3), random(6, 3), random(6))
    assert chunked(*inputs)[0].dtype == torch.double
    assert gradcheck(chunked, inputs)

    def gradients(score: Callable[..., tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        logprobs, entropy = score(*inputs)
        weights = torch.arange(1.0, 6.0)
        return torch.autograd.grad((logprobs * weights + entropy * weights.flip(0)).sum(), inputs)

    torch.testing.assert_close(gradients(chunked), gradients(whole), rtol=1e-12, atol=1e-12)


def test_entropy_of_a_uniform_distribution_is_log_of_its_size() -> None:
    head = torch.nn.Linear(4, 32)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    logprobs, entropy = chunked_logprobs(torch.randn(3, 4), head, torch.tensor([0, 5, 31]), 1.0, chunk_size=2)
    torch.testing.assert_close(entropy, torch.full((3,), 32.0).log())
    torch.testing.assert_close(logprobs, -entropy)


def test_no_more_than_a_chunk_of_the_vocabulary_is_held() -> None:
    head = torch.nn.Linear(4, 1000)
    widest = 0

    def project(hidden: torch.Tensor) -> torch.Tensor:
        nonlocal widest
        widest = max(widest, len(hidden))
        return head(hidden)

    chunked_logprobs(torch.randn(40, 4), project, torch.zeros(40, dtype=torch.long), 1.0, chunk_size=16)
    assert widest == 16


def test_scores_are_float32_whatever_the_states_are() -> None:
    head = torch.nn.Linear(4, 10, dtype=torch.bfloat16)
    logprobs, entropy = chunked_logprobs(
        torch.randn(2, 4, dtype=torch.bfloat16), head, torch.tensor([1, 2]), 1.0, chunk_size=2
    )
    assert logprobs.dtype == entropy.dtype == torch.float32


def test_the_chunk_shrinks_as_the_vocabulary_grows() -> None:
    assert [logprob_chunk_size(rows) for rows in (1 << 14, 1 << 17, 1 << 25)] == [1024, 128, 1]
    assert logprob_chunk_size(1 << 17, "cuda") == 1024  # enough tokens to multiply more than it reads


def test_the_entropy_can_be_left_out_and_is_not_computed_again() -> None:
    hidden, head, targets = torch.randn(3, 4, requires_grad=True), torch.nn.Linear(4, 32), torch.tensor([0, 5, 31])
    logprobs, entropy = chunked_logprobs(hidden, head, targets, 1.0, chunk_size=2)
    without, nothing = chunked_logprobs(hidden, head, targets, 1.0, chunk_size=2, with_entropy=False)
    torch.testing.assert_close(without, logprobs)
    assert entropy.all()
    assert not nothing.any()
    with torch.profiler.profile() as profile:
        logprobs.sum().backward()
    called = {event.key for event in profile.key_averages()}
    assert "aten::_log_softmax" in called  # recomputed
    assert "aten::exp" not in called


def test_an_entropy_outside_the_loss_keeps_nothing_for_its_gradient() -> None:
    hidden, head, targets = torch.randn(3, 4, requires_grad=True), torch.nn.Linear(4, 32), torch.tensor([0, 5, 31])
    logprobs, entropy = chunked_logprobs(hidden, head, targets, 1.0, chunk_size=2)
    assert logprobs.requires_grad
    assert not entropy.requires_grad
    _, wanted = chunked_logprobs(hidden, head, targets, 1.0, chunk_size=2, entropy_gradient=True)
    assert wanted.requires_grad
    torch.testing.assert_close(entropy, wanted.detach())
