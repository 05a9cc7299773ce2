// The console's frame: chooses the page, and shows what is around it.
import { alarmBanner } from './alarms.js';
import { logIn, logOut, may, onOutage, onSession, restore, session } from './api.js';
import { h, options, show } from './dom.js';
import { clock } from './format.js';
import { isChinese, setLanguage, t } from './i18n.js';
import { loginPage } from './login.js';
import { rights } from './rights.js';
import { wallPage } from './wall.js';
import { errorWords, fail } from './ui.js';

const app = document.getElementById('app');
const dark = matchMedia('(prefers-color-scheme: dark)');
let page = null;

function applyTheme() {
  const chosen = localStorage.getItem('theme');
  document.documentElement.dataset.theme = chosen === 'light' || chosen === 'dark' ? chosen : dark.matches ? 'dark' : 'light';
}
applyTheme();
dark.addEventListener('change', applyTheme);

const places = [
  ['#/rooms', 'Rooms'], ['#/server', 'Server', rights.getCounters], ['#/events', 'Events'], ['#/apps', 'Apps', rights.listGatherings], ['#/webhooks', 'Webhooks', rights.listWebhookTargets], ['#/tokens', 'Tokens', rights.listTokens],
  ['#/audit', 'Audit', rights.listAudit], ['#/settings', 'Settings', rights.listSettings],
];

/** Pages other than the wall are loaded when they are first opened. */
async function open(path, query) {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  if (parts[0] === 'rooms' && parts[1]) return (await import('./room.js')).roomPage(parts[1]);
  if (parts[0] === 'server') return (await import('./server.js')).serverPage();
  if (parts[0] === 'apps') return (await import('./gatherings.js')).gatheringsPage(parts[1]);
  if (parts[0] === 'webhooks') return (await import('./webhooks.js')).webhooksPage();
  if (parts[0] === 'tokens') return (await import('./access.js')).tokensPage();
  if (parts[0] === 'settings') return (await import('./settings.js')).settingsPage();
  if (parts[0] === 'audit') return (await import('./access.js')).auditPage();
  if (parts[0] === 'events') return (await import('./access.js')).eventsPage();
  return wallPage(query);
}

const main = h('main', { id: 'main', tabindex: '-1' });
const outage = h('p', { class: 'outage', role: 'alert' });
outage.hidden = true;

// Outdated figures are marked. A page opened after the last answer has none.
let awaySince = null;
let openedAt = 0;
function drawOutage() {
  main.classList.toggle('stale', awaySince !== null);
  outage.hidden = awaySince === null;
  const time = clock(awaySince);
  outage.textContent = awaySince === null ? '' : openedAt > Date.parse(awaySince) ? t('The server has not answered since {time}. Nothing can be shown until it answers.', { time })
    : t('The server has not answered since {time}. What is shown is from then.', { time });
}
onOutage((since) => { awaySince = since; drawOutage(); });

let alarms = null;
function frame() {
  alarms?.stop();
  alarms = alarmBanner();
  const links = places.filter(([, , right]) => !right || may(right)).map(([address, name]) => h('a', { href: address }, t(name)));
  const theme = h('select', { 'aria-label': t('Theme'), onchange: (event) => { localStorage.setItem('theme', event.target.value); applyTheme(); } },
    options([['system', t('As the system')], ['light', t('Light')], ['dark', t('Dark')]], localStorage.getItem('theme') ?? 'system'));
  const language = h('select', { 'aria-label': t('Language'), id: 'language', onchange: (event) => setLanguage(event.target.value) },
    [['en', 'English'], ['zh', '中文']].map(([value, label]) => h('option', { value, lang: value, selected: (value === 'zh') === isChinese() }, label)));
  show(app, h('a', { class: 'skip', href: '#main', onclick: (event) => { event.preventDefault(); main.focus(); } }, t('Skip to content')),
    h('header', { class: 'bar' }, h('a', { class: 'brand', href: '#/rooms' }, h('img', { src: '/console/icon.svg', alt: '', width: 24, height: 24 }), 'Earshot'),
      h('nav', { 'aria-label': t('Main menu') }, links),
      h('div', { class: 'tools' }, theme, language, h('button', { type: 'button', title: t('Logged in as {name} ({role})', session), onclick: () => logOut().catch(fail) }, t('Log out')))),
    outage, alarms.element, main);
  frame.links = links;
}

async function route() {
  if (!session) return;
  const [path, query] = location.hash.slice(1).split('?');
  const turn = route.turn = (route.turn ?? 0) + 1;
  const next = await open(path || '/rooms', new URLSearchParams(query));
  if (turn !== route.turn) { next.stop?.(); return; }
  page?.stop?.();
  page = next;
  show(main, page.element);
  openedAt = Date.now();
  drawOutage();
  document.title = `${page.title} · Earshot`;
  for (const link of frame.links) {
    if (`${path || '/rooms'}/`.startsWith(`${link.getAttribute('href').slice(1)}/`)) {
      link.setAttribute('aria-current', 'page');
      // On a phone the navigation scrolls sideways.
      link.parentElement.scrollLeft = link.offsetLeft - (link.parentElement.clientWidth - link.offsetWidth) / 2;
    } else link.removeAttribute('aria-current');
  }
  scrollTo(0, 0);
}

function sessionChanged(next) {
  page?.stop?.();
  page = null;
  if (!next) {
    alarms?.stop();
    alarms = null;
    show(app, loginPage().element);
    document.title = 'Earshot';
    return;
  }
  frame();
  route().catch(fail);
}

// Escape closes an open menu as it closes a dialog.
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || document.querySelector('dialog[open]')) return;
  for (const menu of document.querySelectorAll('details.more[open]')) {
    menu.open = false;
    menu.querySelector('summary').focus();
  }
});

addEventListener('hashchange', () => route().catch(fail));

async function begin() {
  onSession(sessionChanged);
  // A code, and perhaps the page to show: #code=…&page=/rooms/walk
  const [, code, to] = /^#code=([\w-]+)(?:&page=(\/[\w/.%~-]*))?$/.exec(location.hash) ?? [];
  if (code) {
    // The code must not stay in the history.
    history.replaceState(null, '', to ? `/#${to}` : '/');
    try {
      await logIn({ code });
      return;
    } catch (error) {
      await restore();
      if (!session) show(app, loginPage(errorWords(error)).element);
      return;
    }
  }
  await restore();
}

begin().catch((error) => {
  show(app, loginPage(t('The server cannot be reached. Trying again…')).element);
  fail(error);
  setTimeout(() => location.reload(), 3000);
});
