/** The rules of the design; each can be left out, to see that the model finds what it is for. */
export const RULES = {
  "missing-row": "the fence refuses to write where there is no position",
  predecessor: "the fence compares the predecessor's ID, not only its sequence number",
  "turn-is-no-refusal": "a wrong turn means catch up; only a failed precondition gives an entry up",
  "unknown-is-no-refusal": "without a result, an entry is not given up",
  "empty-entry": "an entry without a result is abandoned by an empty one in its place",
  "both-kept": "the abandoned entry and the empty one are kept until D1 names one",
  "no-abandoning-after-restart": "what an earlier instance wrote is repeated, never abandoned",
  "releases-first": "rows that give up a unique place are written before rows that take it",
  "one-at-fault": "a group that D1 refuses is split until the command at fault is alone",
  "absolute-deadline": "a command carries its Worker's deadline and is not decided after it",
  "unblock-finishes": "an unblock finishes an unfinished block first",
  "chunks-by-row": "later chunks of a block are decided by its row, never from memory",
  "id-before-oldest": "the ID before the oldest kept entry is kept",
  "kept-since-lacked": "what D1 was seen to lack is kept for 31 days from then",
  alarm: "two minutes after its last entry the object compares again",
  "clock-row": "after a gap between its ticks the sweep asks every object",
  "first-entry": "a new instance answers nothing before it has written an entry",
  "answers-kept": "an answer that changed nothing is kept by its command's ID, too",
  "answered-by-earlier": "a new instance sends back what was sent before it began",
  "touch-before-gap": "an instance touches its storage before it reports a gap",
  "loss-keeps-numbers": "accepting a loss ends pending invitations and frees no number",
  "loss-beyond-both": "accepting a loss moves every counter beyond what either side knows",
  "last-alone": "catching up sends the last entry alone",
  "device-precondition": "what is decided without reading requires that the device has no badge",
} as const;

export type Rule = keyof typeof RULES;
