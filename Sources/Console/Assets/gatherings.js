// Apps' channels, mesh rooms, classes and machines: members, queue, and an operator's actions.
import { get, may, post } from './api.js';
import { dim, h, head, panel, show, stack } from './dom.js';
import { none, time } from './format.js';
import { t } from './i18n.js';
import { rights } from './rights.js';
import { ask, button, dangerous, every, facts, number, roomLink, small, table } from './ui.js';

const address = (id) => `/gatherings/${encodeURIComponent(id)}`;
const link = (id) => h('a', { href: `#/apps/${encodeURIComponent(id)}` }, id);
const kinds = { plain: 'channel', mesh: 'mesh room', class: 'class', machine: 'claw machine' };

/** All gatherings, or the one with this id. */
export function gatheringsPage(id) { return id ? onePage(id) : listPage(); }

function listPage() {
  const list = panel();
  const element = stack(h('h1', null, t('Apps')), list);
  async function load() {
    const page = await get('/gatherings');
    show(list, page.list.length ? table('', [t('Name'), t('Kind'), t('Room'), number(t('Members')), number(t('In the queue')), t('Since')],
      page.list.map((each) => [link(each.gatheringId), t(kinds[each.kind] ?? each.kind), each.roomId, each.members, each.queued, each.createdAt ? time(each.createdAt) : none]))
      : dim(t('No channel, mesh room, class or machine is in use.')),
    page.total > page.list.length && dim(t('{count} more', { count: page.total - page.list.length })));
  }
  return { element, title: t('Apps'), stop: every(5000, load) };
}

function onePage(id) {
  const body = h('div', { class: 'stack' });
  const element = stack(head(id, may(rights.endGathering) && button(t('End'), async () => {
    if (await ask(id, t('End this gathering? Everybody in it is disconnected, and its queue is gone.'), [], () => post(`${address(id)}/end`), { verb: t('End'), isDanger: true })) location.hash = '#/apps';
  }, { class: 'danger' })), body);

  function people(found) {
    return table(t('Members'), [t('Member'), t('Name'), t('Role'), t('Joined'), t('Away since'), ''], found.people.map((each) => [each.userId, each.name, each.role || none, time(each.joinedAt), each.awaySince ? time(each.awaySince) : none,
      may(rights.kickFromGathering) && dangerous(t('Kick'), each.name, t('Remove {name}? Its connection is ended, and its place in the queue is given up.', { name: each.name }),
        () => post(`${address(id)}/kick`, { userId: each.userId }), t('Kicked.'), load)]));
  }

  function queue(found) {
    if (found.kind === 'mesh') return null;
    const pause = found.isPaused ? may(rights.resumeQueue) && button(t('Resume'), () => post(`${address(id)}/queue/resume`).then(load)) : may(rights.pauseQueue) && button(t('Pause'), () => post(`${address(id)}/queue/pause`).then(load));
    return panel(h('div', { class: 'head' }, h('h2', null, t('Queue')), pause), found.isPaused && dim(t('Takes nobody new.')),
      found.queue.length ? table('', [t('Member'), t('Since'), t('Value'), ''], found.queue.map((each) => [each.key, time(each.at), each.value,
        may(rights.removeFromQueue) && small(t('Take out'), () => post(`${address(id)}/queue/remove`, { key: each.key }).then(load))]))
        : dim(t('Nobody waits.')));
  }

  async function load() {
    try {
      const found = await get(address(id));
      show(body, panel(facts([[t('Kind'), t(kinds[found.kind] ?? found.kind)], [t('Room'), found.kind === 'mesh' ? found.roomId : roomLink(found.roomId)],
        [t('Since'), found.createdAt && time(found.createdAt)]])), panel(people(found)), queue(found));
    } catch (error) {
      if (error.status !== 404) throw error;
      show(body, dim(t('It has ended.')));
    }
  }
  return { element, title: id, stop: every(3000, load) };
}
