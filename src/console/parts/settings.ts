import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import type { Application } from "../../client/index.ts";
import { useLoaded, useSession } from "./hooks.ts";

const SettingsContext = createContext<Application | null>(null);

export const SettingsProvider = SettingsContext.Provider;

/** The application's settings when the view was opened: an administrator may have changed them since the sign-in. */
export function useSettings(): Application {
  const { application } = useSession();
  return useContext(SettingsContext) ?? application;
}

/** Reloads the settings with each view. Until they are loaded, and if that fails, the last ones are used. */
export function useFreshSettings(view: string): Application {
  const { application } = useSession();
  const loaded = useLoaded((server, signal) => server.getApplication({ signal }));
  const latest = useRef(application);
  if (loaded.value !== null) latest.current = loaded.value;
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) loaded.reload();
    isFirst.current = false;
  }, [view]);
  return latest.current;
}
