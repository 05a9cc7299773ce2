// The reasons why a stream is not well, in the page's language. The server's own text is English; others are built from code and values.
import { bits } from './format.js';
import { isChinese } from './i18n.js';

const number = (value, digits) => (typeof value === 'number' ? String(Number(value.toFixed(digits))) : '?');
const seconds = (ms) => `${number(Math.abs(ms) / 1000, 1)} 秒`;
const interval = '请把编码器的关键帧间隔设为 2 秒（OBS：关键帧间隔；ffmpeg：-g 为帧率的两倍）。';
const fixed = '此处无需处理；更新编码器也许能让它在其他服务器上同样正常。';
const replace = '请更新编码器或其固件，或换用 ffmpeg、OBS 等其他编码器推流。';
const restart = '请重启编码器；若持续出现，请更新编码器或换用其他编码器。';

// Keep as Sources/Health/ReasonText.swift. `codec`: the stream's codec of that track.
const chinese = {
  media_behind_clock: ({ value }) => `每秒只到达 ${number(value, 2)} 秒的媒体：上行网络或编码器太慢，观众会卡顿并越来越落后。请降低码率、改善网络，或检查编码器的负载。`,
  uplink_stalls: ({ value }) => value > 10000 ? `已有 ${seconds(value)}没有数据到达：观众看到画面停住。请检查推流端的网络，尤其是无线网络。` : `最近十秒内有 ${seconds(value)}没有数据到达，而媒体仍在继续：观众看到画面停住。请检查推流端的网络，尤其是无线网络；若持续出现请降低码率。`,
  uplink_jitter: ({ value }) => `消息平均早到或晚到 ${number(value, 0)} 毫秒：播放器需要较长的缓冲，否则会卡顿。请检查推流端的网络，或让编码器逐帧发送而不是成批发送。`,
  timestamp_jump: ({ value }) => `时间戳向${value < 0 ? '后' : '前'}跳了 ${seconds(value)}：播放器和录制可能中断或音画不同步。请让编码器使用同一个稳定的时钟；若持续出现请重启编码器。`,
  av_skew: ({ value }) => `音频的时间戳比视频${value < 0 ? '落后' : '超前'} ${seconds(value)}：播放器会等待较晚的一方，或音画不同步。请重启推流端，或设置其音频偏移；并检查两者是否使用同一个时钟。`,
  av_start_gap: ({ value }) => `音频比视频${value < 0 ? '早' : '晚'} ${seconds(value)}开始：若其中之一是后来才打开的，则无需理会。若音画不同步，请设置编码器的音频偏移。`,
  fps_low: ({ value, expected }) => `视频每秒 ${number(value, 1)} 帧，而通常为 ${number(expected, 1)} 帧：画面不流畅。请检查编码器的负载和丢帧；降低分辨率或预设。`,
  keyframe_interval_long: ({ value }) => `已有 ${seconds(value)}没有关键帧：丢包后观众要等这么久才有画面，HLS 的分片也有这么长。${interval}`,
  keyframe_interval_unbounded: ({ value }) => `已有 ${seconds(value)}没有关键帧：新观众可能看不到画面，HLS 无法切分片。${interval}`,
  keyframe_missing: ({ value }) => `${seconds(value)}内没有任何关键帧：无人能解码视频。请重启编码器，并把关键帧间隔设为 2 秒。`,
  audio_missing: () => '元数据声明了音频，但没有音频到达：观众听不到声音。请检查麦克风或调音台、其权限，以及编码器的音轨。',
  audio_stopped: ({ value }) => `音频已停止 ${number(value, 0)} 秒，而视频仍在继续：观众听不到声音。请检查麦克风或调音台、其权限，以及编码器的音轨。`,
  audio_silent: ({ value }) => `音频已有 ${number(value, 0)} 秒或更久为数字静音：观众听不到声音。请检查编码器中是否有静音或未接入的音源。`,
  video_missing: () => '元数据声明了视频，但没有视频到达：观众看不到画面。请检查摄像头、其权限，以及编码器的视频轨。',
  video_stopped: ({ value }) => `视频已停止 ${number(value, 0)} 秒，而音频仍在继续：画面停住。请检查摄像头、其权限，以及编码器的视频轨。`,
  video_bitrate_mismatch: ({ value, expected }) => `视频为 ${bits(value)}，而元数据声明为 ${bits(expected)}：${value > expected ? '上行网络和观众可能承受不了' : '画质可能低于预期'}。请将编码器的码率设置和码率控制与实际发送的码率对照。`,
  audio_bitrate_mismatch: ({ value, expected }) => `音频为 ${bits(value)}，而元数据声明为 ${bits(expected)}：上行网络和观众可能承受不了。请将编码器的码率设置和码率控制与实际发送的码率对照。`,
  b_frames: ({ value }) => `视频含有 B 帧，最多增加 ${number(value, 0)} 毫秒延迟：低延迟 HLS 和 MP4 观众会落后这么多。若要低延迟请把 B 帧设为 0（x264：tune zerolatency 或 bframes=0）；否则无需处理。`,
  video_codec_not_carried: (_, codec) => `HLS、MP4、录制和截图不支持 ${codec ?? '此编码'}：只有 RTMP 和 FLV 观众能看到视频。请使用 H.264、HEVC 或 AV1 编码。`,
  audio_codec_not_carried: (_, codec) => `HLS、MP4 和录制不支持 ${codec ?? '此编码'}：只有 RTMP 和 FLV 观众能听到声音。请使用 AAC 或 Opus 编码。`,
  keyframe_flags_wrong: ({ value }) => `${number(value, 1)}% 的画面关键帧标志有误：服务器按画面本身的类型更正，观众不受影响。${fixed}`,
  video_start_codes: ({ value }) => `${number(value, 1)}% 的画面用起始码代替了 FLV 要求的长度：服务器已转换，观众不受影响。${fixed}`,
  video_stray_bytes: ({ value }) => `${number(value, 1)}% 的画面在最后一个 NAL 单元之后有多余的字节：服务器已截去，观众不受影响。${fixed}`,
  video_header_made: () => `视频没有 FLV 形式的序列头：服务器已根据其参数集生成，观众不受影响。${fixed}`,
  video_broken: ({ value }) => `${number(value, 1)}% 的画面不是由 NAL 单元组成（其长度对不上），或依赖于这样的画面：HLS、MP4 和录制会略去这些画面，多数播放器也无法解码。${replace}`,
  video_header_missing: () => `视频没有可读的序列头，帧中也没有参数集：无人能解码，HLS、MP4 和录制会略去视频。${restart}`,
  audio_adts: ({ value }) => `${number(value, 1)}% 的 AAC 帧带有 FLV 不允许的 ADTS 头：服务器已去除，听众不受影响。${fixed}`,
  audio_broken: ({ value }) => `${number(value, 1)}% 的 AAC 帧带有长度不符的 ADTS 头：HLS、MP4 和录制会略去这些帧，许多播放器没有声音。${replace}`,
  audio_header_missing: () => `音频没有可读的 AAC 序列头：无人能解码，HLS、MP4 和录制会略去音频。${restart}`,
  video_refused: ({ value }) => `某个输出略去了 ${number(value, 1)}% 的画面。请重启编码器；若持续出现，请使用 H.264 编码并检查编码器的设置。`,
  audio_refused: ({ value }) => `某个输出略去了 ${number(value, 1)}% 的音频。请重启编码器；若持续出现，请使用 AAC 编码并检查编码器的设置。`,
};

/** The meaning of a reason and the remedy. `stream`: the figures that it is part of. */
export function reasonText(reason, stream) {
  const written = isChinese() && Object.hasOwn(chinese, reason.code) ? chinese[reason.code] : null;
  return written ? written(reason, reason.code.startsWith('video') ? stream?.video?.codec : stream?.audio?.codec) : reason.message;
}
