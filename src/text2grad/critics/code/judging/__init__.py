"""What runs inside the sandbox: the judge, which has the tests, and the processes of the answer, which do not.

```
judge (tests, expected values) --- control ---> starter --- fork, one per test case ---> answer's process
       \\____________________________ socket of the case: plain data as JSON ______________________/
```

The processes share nothing but that socket and a map of executed lines. The answer's process is forked from one that
has never seen the tests, holds no other descriptor, may not signal, trace, fork or execute (`confine`), and cannot
read the judge's memory. What it sends is data: `wire` rebuilds it as built-in values, or refuses it.

These modules need only the standard library and import as little of it as possible: they are sent into the sandbox as
compiled code under their own names, and start-up time counts for every answer.
"""
