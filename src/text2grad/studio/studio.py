"""What the studio works with: the open sources, a critic, a teacher, and training runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from text2grad.studio.assistant import Assistant
from text2grad.studio.lessons import Lessons
from text2grad.studio.training_runs import TrainingRuns
from text2grad.studio.workspace import Workspace


@dataclass
class Studio:
    """All parts of a running studio. token: what requests need; None on loopback."""

    workspace: Workspace
    runs: TrainingRuns
    assistant: Assistant | None = None
    lessons: Lessons | None = None
    token: str | None = field(default=None, repr=False)

    def close(self) -> None:
        """Close stores and the teacher's thread; training runs go on."""
        self.workspace.close()
        if self.lessons:
            self.lessons.close()
