"""A critic that comments on answers before a person does. It is asked once per answer, and one answer at a time."""

from __future__ import annotations

import threading

from text2grad.critics.base import Critic, collect_feedback
from text2grad.schema import Feedback
from text2grad.studio.project import Project


class Assistant:
    """Asks a critic and keeps what it says. name: as of `--critic`."""

    def __init__(self, critic: Critic, name: str) -> None:
        self.critic, self.name, self._lock = critic, name, threading.Lock()

    def critique(self, project: Project, index: int) -> Feedback:
        """Return the critic's feedback on an answer; failed feedback is not kept, so that it is asked again."""
        key, example = project.keys[index], project.examples[index]
        with self._lock:
            known = project.store.predictions(key).get(key, {}).get(self.name)
            if known is not None:
                return known
            (feedback,) = collect_feedback(self.critic, [example])
            if feedback.status == "ok":
                project.store.add_prediction(key, self.name, feedback)
            return feedback
