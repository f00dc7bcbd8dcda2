import { BadgeServiceError, isRefusedBadge, isRefusedUserToken } from "../../client/index.ts";
import { type Cast, createApplication, newDevice } from "./cast.ts";
import { startIdentityProvider } from "./identity-provider.ts";
import { must } from "./narrator.ts";

/** The app's client ID at the provider. */
const APP = "badge-app";

/** Only a logged-in person gets their badge, and can stop it when the phone is lost. */
export async function onlyAlice({ narrator, origin }: Cast): Promise<void> {
  const provider = await startIdentityProvider();
  try {
    const { applicationId } = await narrator.step(
      "Another application has its users verified by their identity provider",
      "Every phone has an application's ID, so the ID alone proves little.",
      () => createApplication(narrator, "Demo login", ["--user-issuer", provider.issuer, "--user-audience", APP]),
    );
    const device = (name: string) => newDevice({ baseUrl: origin, applicationId, fetch: narrator.fetch }, name);
    const phone = device("phone");
    await narrator.step(
      "A stranger with the application's ID asks for Alice's badge",
      "401: both without a token, and with a token of the stranger.",
      async () => {
        const stranger = device("stranger");
        for (const userToken of [undefined, await provider.logIn("mallory", APP)]) {
          const error = await refusal(stranger.requestBadge({ userId: "alice", userToken }));
          must(isRefusedUserToken(error), "nobody gets a badge in another's name");
        }
      },
    );
    const userToken = await provider.logIn("alice", APP);
    const { badgeId } = await narrator.step(
      "Alice logs in, and her phone asks",
      "201: the phone shows the token that it got at her login.",
      () => phone.requestBadge({ userId: "alice", userToken }),
    );
    await narrator.step(
      "She loses the phone, and stops its badge from another one",
      "This works at night, without help. Only the server or staff can resume it.",
      async () => {
        const other = device("other-phone");
        const badges = await other.ownBadges({ userToken });
        must(badges.length === 1 && badges[0]?.id === badgeId, "a person sees their own badges");
        await other.suspendOwn(badgeId, { userToken });
        must(isRefusedBadge(await refusal(phone.sign("aGVsbG8="))), "a suspended badge signs nothing");
      },
    );
  } finally {
    provider.close();
  }
}

const refusal = (call: Promise<unknown>): Promise<BadgeServiceError | undefined> =>
  call.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof BadgeServiceError) return error;
      throw error;
    },
  );
