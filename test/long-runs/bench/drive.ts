/** What a driver is asked to do: one call, many times over. */
export interface Drive {
  call: { method: string; path: string; headers: Record<string, string>; body?: string };
  times: number;
}

/** Where a driver takes its orders; every other path is the Worker's own. */
export const DRIVE_PATH = "/own-cost";
