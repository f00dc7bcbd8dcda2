export type Interrupt = ReturnType<typeof catchInterrupt>;

/**
 * Catches Ctrl-C until `release`, instead of other listeners: the library that runs local databases would end this process
 * before the command is withdrawn. A second Ctrl-C ends the process.
 *
 * @param leftBehind what a second Ctrl-C prints
 */
export function catchInterrupt(leftBehind: string) {
  const others = process.listeners("SIGINT");
  let isCaught = false;
  const caught = Promise.withResolvers<void>();
  const listener = () => {
    if (isCaught) {
      process.stderr.write(`${leftBehind}\n`);
      process.exit(130);
    }
    isCaught = true;
    caught.resolve();
  };
  process.removeAllListeners("SIGINT");
  process.on("SIGINT", listener);
  return {
    isCaught: (): boolean => isCaught,
    /** Resolves when the work does, or when the command is interrupted. */
    async raceWith(work: Promise<unknown>): Promise<void> {
      await Promise.race([work, caught.promise]);
    },
    release(): void {
      process.off("SIGINT", listener);
      for (const other of others) process.on("SIGINT", other);
    },
  };
}
