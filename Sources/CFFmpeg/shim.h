#pragma once
// libav's C API, and those of its macros that Swift cannot import. FFmpeg 5.1, 6 and 7.
#include <stdbool.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/channel_layout.h>
#include <libavutil/error.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>

#if LIBAVUTIL_VERSION_INT < AV_VERSION_INT(57, 24, 100)
#error "FFmpeg 5.1 or later is needed (AVChannelLayout)"
#endif

static const int earshot_error_eof = AVERROR_EOF;
static const int earshot_error_invalid_data = AVERROR_INVALIDDATA;
static const int earshot_error_again = AVERROR(EAGAIN);
static const int earshot_error_no_memory = AVERROR(ENOMEM);
static const int earshot_input_padding = AV_INPUT_BUFFER_PADDING_SIZE;
// An enumeration since FFmpeg 8, macros before.
static const int earshot_scale_flags = SWS_BICUBIC | SWS_ACCURATE_RND;
static const unsigned earshot_tag_hvc1 = MKTAG('h', 'v', 'c', '1');

/// Whether decoding can begin with this picture.
static inline bool earshot_is_keyframe(const AVFrame *frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return frame->flags & AV_FRAME_FLAG_KEY;
#else
    return frame->key_frame;
#endif
}

/// A libav error code for an errno value.
static inline int earshot_error(int code) { return AVERROR(code); }

/// FFmpeg 7 made the bytes given to write_packet const; this gives every version the same type.
typedef int (*earshot_write_function)(void *opaque, const uint8_t *bytes, int count);

typedef int64_t (*earshot_seek_function)(void *opaque, int64_t offset, int whence);

static inline AVIOContext *earshot_avio_writer(
    unsigned char *buffer, int size, void *opaque, earshot_write_function write, earshot_seek_function seek) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
    return avio_alloc_context(buffer, size, 1, opaque, NULL, write, seek);
#else
    return avio_alloc_context(buffer, size, 1, opaque, NULL, (int (*)(void *, uint8_t *, int))write, seek);
#endif
}

static inline AVIOContext *earshot_avio_reader(
    unsigned char *buffer, int size, void *opaque, int (*read)(void *opaque, uint8_t *bytes, int count), earshot_seek_function seek) {
    return avio_alloc_context(buffer, size, 0, opaque, read, NULL, seek);
}
