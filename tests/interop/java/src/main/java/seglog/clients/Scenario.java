package seglog.clients;

/** What an application does with clients; what comes of it does not depend on timing. */
interface Scenario {
  /** Does it, and returns what came of it, as JSON can hold it. */
  Object run(Site site) throws Exception;
}
