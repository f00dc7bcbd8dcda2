import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Badges } from "./badges/badges.tsx";
import { Deliveries } from "./deliveries/deliveries.tsx";
import { Invitations } from "./invitations/invitations.tsx";
import { Overview } from "./overview/overview.tsx";
import { Ask } from "./parts/ask.tsx";
import { useSession } from "./parts/hooks.ts";
import { LeavingContext, LeavingGuard } from "./parts/leaving.ts";
import { focusHeading, NoticeBar, NoticeContext, useNoticeBoard } from "./parts/notice.tsx";

const VIEWS = [
  { name: "overview", title: "Overview", View: Overview },
  { name: "badges", title: "Badges", View: Badges },
  { name: "invitations", title: "Invitations", View: Invitations },
  { name: "deliveries", title: "Deliveries", View: Deliveries },
] as const;

/** The view that the address names. The address holds nothing else. */
const viewOf = (hash: string) => VIEWS.find(({ name }) => hash === `#${name}`) ?? VIEWS[0];

/** What a signed-in person sees: the application's name, the views, and what has just been done. */
export function Workplace() {
  const session = useSession();
  const [view, setView] = useState(() => viewOf(location.hash));
  const shownView = useRef(view);
  const [guard] = useState(() => new LeavingGuard());
  const [question, setQuestion] = useState<{ loss: string; goOn: () => void } | null>(null);
  const { shown, notices } = useNoticeBoard();
  useEffect(() => focusHeading(), []);
  const leave = useCallback(
    (goOn: () => void) => (guard.loss === null ? goOn() : setQuestion({ loss: guard.loss, goOn })),
    [guard],
  );
  useEffect(() => {
    const onChange = () => {
      const next = viewOf(location.hash);
      if (next === shownView.current) return;
      leave(() => {
        notices.dismiss();
        shownView.current = next;
        setView(next);
      });
    };
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, [leave, notices]);
  const closeQuestion = () => {
    setQuestion(null);
    // The address has changed already.
    history.replaceState(null, "", `#${shownView.current.name}`);
  };
  const { name, applicationId } = session.application;
  const { View } = view;
  return (
    <NoticeContext.Provider value={notices}>
      <LeavingContext.Provider value={guard}>
        <section class="application-bar" aria-label="Application">
          <p>
            <strong>{name}</strong> <span class="application-id">{applicationId}</span>
          </p>
          <button type="button" onClick={() => leave(() => session.end("signed-out"))}>
            Sign out
          </button>
        </section>
        <nav class="views" aria-label="Views">
          {VIEWS.map((each) => (
            <a key={each.name} href={`#${each.name}`} aria-current={each === view ? "page" : undefined}>
              {each.title}
            </a>
          ))}
        </nav>
        <main>
          <View />
          <div role="status" class="notice-place">
            {shown !== null && <NoticeBar key={shown.serial} notice={shown.notice} />}
          </div>
        </main>
        {question !== null && (
          <Ask
            title="Leave without the code?"
            action="Leave without it"
            isFinal
            act={async () => {
              question.goOn();
              return null;
            }}
            onClose={closeQuestion}
          >
            <p>{question.loss}</p>
          </Ask>
        )}
      </LeavingContext.Provider>
    </NoticeContext.Provider>
  );
}
