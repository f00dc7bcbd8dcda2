import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { AccessView } from "./access/access.tsx";
import { BadgePage } from "./badges/badge-page.tsx";
import { Badges } from "./badges/badges.tsx";
import { Deliveries } from "./deliveries/deliveries.tsx";
import { Doors } from "./doors/doors.tsx";
import { History } from "./history/history.tsx";
import { FiguresView, Overview } from "./overview/overview.tsx";
import { ConfirmDialog } from "./parts/confirm-dialog.tsx";
import { useSession } from "./parts/hooks.ts";
import { focusHeading, NoticeBar, NoticeContext, useNoticeBoard } from "./parts/notice.tsx";
import { hrefOf, type Route, useRoute } from "./parts/route.ts";
import { SettingsProvider, useFreshSettings } from "./parts/settings.ts";
import { Blocked } from "./people/blocked.tsx";
import { PersonPage } from "./people/person.tsx";
import { Visitors } from "./visitors/visitors.tsx";

interface ViewProps {
  params: Route["params"];
}

/** The views, by their names in the address. Those with a title are in the navigation. */
const VIEWS: readonly {
  name: string;
  title?: string;
  under?: string;
  /** Only for operators, because the service refuses it to others (contract section 19). */
  isForOperators?: boolean;
  View: ComponentType<ViewProps>;
}[] = [
  { name: "today", title: "Today", View: Overview },
  { name: "badges", title: "Badges", View: Badges },
  { name: "visitors", title: "Visitors", View: Visitors },
  { name: "blocked", title: "Blocked", View: Blocked },
  { name: "doors", title: "Doors", View: Doors },
  { name: "history", title: "History", View: History },
  { name: "deliveries", title: "Deliveries", View: Deliveries },
  { name: "figures", title: "Figures", View: FiguresView },
  { name: "access", title: "Access", isForOperators: true, View: AccessView },
  { name: "badge", under: "badges", View: BadgePage },
  { name: "person", under: "badges", View: PersonPage },
];

const ROLE_WORDS = { viewer: "viewer", reception: "reception", operator: "operator" } as const;

/** What a signed-in person sees: who is signed in, the views, and what has just been done. */
export function Workplace() {
  const session = useSession();
  const route = useRoute();
  const { shown, notify } = useNoticeBoard();
  const { view, params } = route;
  const found = VIEWS.find(({ name }) => name === view) ?? VIEWS[0];
  const settings = useFreshSettings(location.hash);
  const isFirst = useRef(true);
  useEffect(() => {
    // The notice of an action that opens another view stays there.
    if (!isFirst.current && shown?.address !== location.hash) notify(null);
    isFirst.current = false;
    focusHeading();
    scrollTo(0, 0);
  }, [view, params.id, params.user]);
  useEffect(() => {
    // The codes of new passes would be lost. The browser asks with its own text.
    const ask = (event: BeforeUnloadEvent) => session.hasNewCodes && event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [session]);
  const [isLeaving, setLeaving] = useState(false);
  const signOut = async () => {
    session.end("signed-out");
    return null;
  };
  if (found === undefined) return null;
  const { name, applicationId, signedIn } = settings;
  const { View } = found;
  return (
    <NoticeContext.Provider value={notify}>
      <section class="application-bar" aria-label="Application">
        <p>
          <strong>{name}</strong> <span class="application-id">{applicationId}</span>
        </p>
        <p class="signed-in">
          {signedIn === undefined ? (
            "Signed in with the application's own secret"
          ) : (
            <>
              <strong>{signedIn.name}</strong> <span class="hint">({ROLE_WORDS[signedIn.role]})</span>
            </>
          )}{" "}
          <button type="button" class="quiet" onClick={() => (session.hasNewCodes ? setLeaving(true) : signOut())}>
            Sign out
          </button>
        </p>
      </section>
      {isLeaving && (
        <ConfirmDialog
          title="Sign out without the codes of the new passes?"
          action="Sign out anyway"
          isFinal
          asksReason={false}
          act={signOut}
          onClose={() => setLeaving(false)}
        >
          <p>They are shown only now, under Visitors. Print, copy, share or mail them first.</p>
        </ConfirmDialog>
      )}
      <nav class="views" aria-label="Views">
        {VIEWS.map(
          (each) =>
            each.title !== undefined &&
            (!each.isForOperators || session.may("change")) && (
              <a
                key={each.name}
                href={hrefOf(each.name)}
                aria-current={each.name === found.name ? "page" : each.name === found.under ? "true" : undefined}
              >
                {each.title}
              </a>
            ),
        )}
      </nav>
      <main>
        <SettingsProvider value={settings}>
          <View params={params} />
        </SettingsProvider>
        <div role="status" class="notice-place">
          {shown !== null && <NoticeBar key={shown.serial} notice={shown.notice} />}
        </div>
      </main>
    </NoticeContext.Provider>
  );
}
