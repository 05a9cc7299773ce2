// Listening in: the mix of a room's talk channel in the browser.
import { get } from './api.js';
import { h, setText } from './dom.js';
import { t } from './i18n.js';
import { SignedPlayer, socketAddress } from './signed-player.js';
import { button } from './ui.js';

/** Sound alone needs a shorter buffer than pictures do: people answer what they hear. Seconds. */
const target = 0.3;

/** From the last room; rooms opened later begin with it. */
let volume = 1;

/** `path`: the room's path in the API. */
export function listenIn(path) {
  const audio = h('audio', { id: 'listen' });
  const status = h('span', { class: 'dim', role: 'status' });
  const heard = h('span', { id: 'heard' });
  const loudness = h('label', { class: 'row' }, t('Volume'), h('input', { type: 'range', min: 0, max: 1, step: 0.05, value: volume, oninput: (event) => {
    volume = Number(event.target.value);
    audio.volume = volume;
  } }));
  const press = button('', () => (isWanted ? stop() : start()));
  const element = h('div', { class: 'row' }, press, loudness, heard, status, audio);
  let player = null;
  let isWanted = false;

  function start() {
    isWanted = true;
    draw();
    // Some browsers allow sound only from within the click itself; the media comes later.
    audio.play().catch(() => {});
    audio.volume = volume;
    player = new SignedPlayer(audio, async () => socketAddress((await get(`${path}/play-urls`, { lifetime: 3600 })).talk.mp4), (text) => { if (isWanted) setText(status, text); });
    // WebRTC has no talk.
    player.usesWebRTC = false;
    player.start();
    player.target = target;
  }

  function stop() {
    isWanted = false;
    player?.stop();
    player = null;
    setText(status, '');
    setText(heard, '');
    draw();
  }

  function draw() {
    setText(press, isWanted ? t('Stop listening') : t('Listen in'));
    press.setAttribute('aria-pressed', String(isWanted));
    loudness.hidden = !isWanted;
  }

  draw();
  return {
    element,
    /** `members`: the talk channel's, with those who speak. */
    update(members) {
      const names = members.filter((member) => member.speaking && !member.muted).map((member) => member.userId);
      setText(heard, isWanted && names.length ? t('Heard: {names}', { names: names.join(', ') }) : '');
    },
    stop() { if (isWanted) stop(); },
  };
}
