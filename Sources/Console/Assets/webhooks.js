// Webhooks, and failed deliveries.
import { get, may, patch, post, remove, whyNot } from './api.js';
import { dim, h, head, panel, show, stack } from './dom.js';
import { clock, count, none } from './format.js';
import { t } from './i18n.js';
import { rights } from './rights.js';
import { ask, button, dangerous, every, inform, notice, number, secretLine, small, table } from './ui.js';
import { kindGroups, kinds } from './words.js';

const choices = () => kindGroups.map(([name, isIn]) => [t(name), Object.keys(kinds).filter(isIn).map((kind) => [kind, `${t(kinds[kind])} (${kind})`])]);

const fieldsOf = (hook) => [{ name: 'name', label: t('Name'), required: true, length: 64, value: hook?.name },
  { name: 'url', label: t('Address'), type: 'url', required: !hook, length: 2048, help: hook && t('Empty: it stays {url}.', { url: hook.url }) },
  { name: 'kinds', label: t('Only these events'), help: t('None: all.'), groups: choices(), value: hook?.kinds },
  { name: 'rooms', label: t('Only rooms that begin with'), help: t('Beginnings of room ids, such as shop-a-. Empty: all.'), isList: true, value: hook?.rooms.join(', ') }];

/** The outcomes of tests by target, which the server does not keep: {at, text, isBad}. */
const tests = new Map();

/** How a target does, and the outcome of its last test. */
function stateOf(target, isPaused, test) {
  const failure = target.failedAttempts ? `${target.lastError} (${count(target.failedAttempts)})` : target.lastError;
  return [isPaused ? t('Paused') : target.isFailing ? h('span', { class: 'error' }, failure) : target.deliveredAt ? t('good') : t('nothing sent since the start'),
    test && h('div', { class: test.isBad ? 'error' : 'dim' }, t('Test at {time}: {text}', { time: clock(test.at), text: test.text }))];
}

export function webhooksPage() {
  const targets = panel();
  const made = panel();
  const failed = panel();
  const element = stack(head(t('Webhooks'), may(rights.createWebhook) && button(t('Add target'), add)), made, targets, failed);
  if (!may(rights.listWebhookTargets)) {
    show(targets, whyNot(rights.listWebhookTargets));
    return { element, title: t('Webhooks') };
  }

  async function add() {
    let hook;
    if (await ask(t('Add target'), '', fieldsOf(null), async ({ kinds: chosen, rooms, ...values }) => {
      hook = await post('/webhooks', { ...values, ...(chosen.length && { kinds: chosen }), ...(rooms.length && { rooms }) });
    }, { verb: t('Create') })) {
      inform(hook.name, h('p', null, t('This secret is shown once: {secret}', { secret: '' }), ' ', t('It signs the calls, so that the target can tell that they are genuine.')), secretLine(hook.secret));
      await load();
    }
  }

  async function change(hook) {
    if (await ask(`${t('Change')}: ${hook.name}`, t('Deliveries that wait go to the new address.'), fieldsOf(hook), ({ url, ...values }) =>
      patch(`/webhooks/${hook.webhookId}`, { ...values, ...(url && { url }) }), { verb: t('Change') })) {
      notice(t('Changed a webhook'));
      await load();
    }
  }

  function test(hook, { error, status, isDelivered }) {
    const text = error ?? t('The target answered {status}.', { status: `HTTP ${status}` });
    tests.set(hook.webhookId, { at: new Date().toISOString(), text, isBad: !isDelivered });
    notice(text, !isDelivered);
  }

  /** Sends what was given up for a target again. */
  const sendAgain = (targetId) => small(t('Send again'), async () => {
    const { queued } = await post('/webhooks/deliveries/redeliver', { targetId });
    notice(queued ? t('Sent again: {n}', { n: count(queued) }) : t('No delivery to this target was given up. What is pending is tried again by itself.'));
    await load();
  });

  function row(hook) {
    const act = (name, verb, tell) => small(t(verb), async () => { tell(await post(`/webhooks/${hook.webhookId}/${name}`)); await load(); });
    const only = [hook.kinds.map((kind) => `${t(kinds[kind] ?? kind)} (${kind})`).join(', '), hook.rooms.map((each) => `${each}…`).join(', ')].filter(Boolean).join(' · ');
    return [hook.name, h('code', null, hook.url), only || t('all events'), stateOf(hook, hook.isPaused, tests.get(hook.webhookId)), count(hook.pending), h('span', { class: 'row tight' },
      act('test', 'Test', (answer) => test(hook, answer)),
      hook.isPaused ? act('resume', 'Resume', () => notice(t('Resumed a webhook'))) : act('pause', 'Pause', () => notice(t('Paused a webhook'))),
      sendAgain(`webhook-${hook.webhookId}`),
      small(t('Change…'), () => change(hook)),
      dangerous(t('Remove'), t('Remove'), `${hook.name}: ${t('Deliveries that wait for it are dropped.')}`, () => remove(`/webhooks/${hook.webhookId}`), t('Removed.'), load))];
  }

  const resend = ({ deliveryId }) => post(`/webhooks/deliveries/${deliveryId}/redeliver`);

  async function load() {
    const isManager = may(rights.listWebhooks);
    const [{ list }, deliveries, hooks] = await Promise.all([get('/webhooks/targets'), get('/webhooks/deliveries', { state: 'failed', limit: 50 }), isManager ? get('/webhooks').then((data) => data.list) : []]);
    // Targets made here are in their own table, where they can be changed; those from the settings cannot.
    const others = list.filter((target) => !hooks.some((hook) => target.targetId === `webhook-${hook.webhookId}`));
    const worstFirst = (one, other) => Number(other.isFailing) - Number(one.isFailing);
    hooks.sort(worstFirst);
    others.sort(worstFirst);
    made.hidden = !hooks.length;
    show(made, table('', [t('Name'), t('Address'), t('Only'), t('State'), number(t('Pending')), ''], hooks.map(row)));
    targets.hidden = hooks.length > 0 && !others.length;
    show(targets, others.length ? [h('h2', null, t('Targets of the settings')), table('', [t('Target'), t('Address'), t('State'), number(t('Pending')), ''], others.map((target) => [target.targetId, h('code', null, target.url),
      stateOf(target), count(target.pending), may(rights.redeliverDeliveries) && sendAgain(target.targetId)]))] : dim(t('No webhooks.')));
    show(failed, h('h2', null, t('Failed deliveries')), deliveries.list.length ? [
      button(t('Send again'), async () => { for (const each of deliveries.list) await resend(each); notice(t('Sent the failed deliveries again')); await load(); }),
      table('', [t('Time'), t('What'), t('Target'), t('Error'), ''], deliveries.list.map((each) => [clock(each.lastAttemptAt), h('span', null, t(kinds[each.event.kind] ?? each.event.kind), ' ', h('code', { class: 'dim' }, each.event.kind)), each.targetId, each.lastError ?? none,
        small(t('Send again'), async () => { await resend(each); notice(t('Sent a delivery again')); await load(); })]))]
      : dim(t('No delivery was given up.')));
  }
  const stop = every(5000, load);
  return { element, title: t('Webhooks'), stop };
}
