/** After an hour without a key or a pointer event, the tab forgets the secret. */
const IDLE_LIMIT_MILLISECONDS = 60 * 60 * 1000;

/**
 * Calls back once the page was not used for an hour. It reads two clocks: one stops while a computer sleeps, the other can
 * be set back.
 *
 * @returns a function that stops watching
 */
export function watchIdle(onIdle: () => void): () => void {
  const now = () => [Date.now(), performance.now()] as const;
  let last = now();
  const isIdle = () => now().some((time, clock) => time - (last[clock] ?? 0) >= IDLE_LIMIT_MILLISECONDS);
  const check = () => {
    if (isIdle()) onIdle();
  };
  // A key that wakes the computer must not count before the hour is checked.
  const use = () => {
    check();
    last = now();
  };
  const uses = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"] as const;
  const wakes = ["visibilitychange", "pageshow", "focus"] as const;
  for (const type of uses) addEventListener(type, use, { capture: true, passive: true });
  for (const type of wakes) addEventListener(type, check, true);
  const timer = setInterval(check, 10_000);
  return () => {
    for (const type of uses) removeEventListener(type, use, true);
    for (const type of wakes) removeEventListener(type, check, true);
    clearInterval(timer);
  };
}
