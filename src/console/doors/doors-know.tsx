import { useEffect } from "preact/hooks";
import { useLoaded } from "../parts/hooks.ts";
import { count, counted } from "../parts/texts.tsx";
import { allDoors, isConnected } from "./knowing.ts";

/** Doors know within two seconds, and each poll costs the service a read. */
const POLL_MILLISECONDS = 1000;

/** How many connected doors have the last change, updated until all do. Empty if no door is connected. */
export function DoorsKnow() {
  const doors = useLoaded(async (server, signal) => {
    const connected = (await allDoors(server, signal)).filter((door) => isConnected(door));
    return { all: connected.length, know: connected.filter(({ isCurrent }) => isCurrent).length };
  });
  const { value, isLoading, reload } = doors;
  const isWaiting = value !== null && value.know < value.all;
  useEffect(() => {
    if (!isWaiting || isLoading) return;
    const timer = setTimeout(reload, POLL_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [isWaiting, isLoading, reload]);
  if (value === null || value.all === 0) return null;
  return <span class="doors-know">{knowWords(value)}</span>;
}

function knowWords({ all, know }: { all: number; know: number }): string {
  if (know < all) return `${count(know)} of ${counted(all, "connected door knows", "connected doors know")}.`;
  return all === 1 ? "The connected door knows." : `All ${count(all)} connected doors know.`;
}
