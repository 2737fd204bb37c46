"""tbd"""
from __future__ import annotations
from text2grad.critics.marks import Mark
O = {
 "told": ("It rightly reports ", "in the source"),
 "number": ("The source does not give ", "number not in the source"),
 "name": ("The source does not name ", "name not in the source"),
 "word": ("The source does not support ", "word not in the source"),
 "copied": ("It copies the source instead of summarising it at ", "copied"),
 "repeated": ("It repeats itself at ", "repeated"),
 "listed": ("It lists words instead of writing a sentence at ", "no sentence"),
 "broken": ("The grammar breaks at ","x"),
 "filler": ("It talks about the text instead of its content in ", "filler"),
 "padding": ("It is too long and could have stopped before ", "too long"),
 "layout": ("It is not running text: it has ", "layout"),
 "unfinished": ("It breaks off at ", "unfinished"),
}
class Critique:
    def __init__(self): self.text=""
    def comment(self, string, marks):
        out=[]
        for kind,(opening,reason) in O.items():
            mine=[m for m in marks if m.kind==kind]
            ps=self._say(opening,[string[m.start:m.end] if kind!='layout' else "line break" for m in mine])
            out+=[(m,p,reason) for m,p in zip(mine,ps)]
        return sorted(out,key=lambda x:x[0].start)
    def too_short(self):
        return self._say("It is ",["too short to be a summary"],q="")[0]
    def leave_out(self, facts):
        return self._say("It leaves out what the source says about ",facts)
    def _say(self,opening,items,q='"'):
        if not items: return []
        if self.text: self.text+=" "
        self.text+=opening
        ps=[]
        for n,i in enumerate(items):
            if n: self.text+=" and " if n==len(items)-1 else ", "
            self.text+=q; s=len(self.text); self.text+=i; ps.append((s,len(self.text))); self.text+=q
        self.text+="."
        return ps
