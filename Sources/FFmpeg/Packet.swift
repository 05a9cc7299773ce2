internal import CFFmpeg
internal import NIOCore

/// Owns one AVPacket and what it refers to. Used by one thread at a time.
struct Packet: ~Copyable {
    let pointer: UnsafeMutablePointer<AVPacket>

    init() throws(FFmpegError) { self.pointer = try allocated(av_packet_alloc(), "av_packet_alloc") }

    deinit {
        var pointer: UnsafeMutablePointer<AVPacket>? = self.pointer
        av_packet_free(&pointer)
    }

    /// Replaces the packet's data.
    ///
    /// libav reads up to 64 bytes past a packet's end. When the buffer has that much room after its data the packet refers to it,
    /// retained and read-only; otherwise, as for a slice out of the middle of a buffer, the bytes are copied once.
    func fill(_ bytes: ByteBuffer) throws(FFmpegError) {
        av_packet_unref(self.pointer)
        let count = bytes.readableBytes
        guard count <= Int(Int32.max) - Int(earshot_input_padding) else {
            throw .overLimit(field: "packet (bytes)", found: count, max: Int(Int32.max) - Int(earshot_input_padding))
        }
        if count > 0, bytes.writableBytes >= Int(earshot_input_padding) {
            try self.refer(to: bytes)
        } else {
            try check(av_new_packet(self.pointer, Int32(count)), "av_new_packet")
            bytes.withUnsafeReadableBytes { source in
                if let from = source.baseAddress {
                    self.pointer.pointee.data.update(from: from.assumingMemoryBound(to: UInt8.self), count: count)
                }
            }
        }
    }

    private func refer(to bytes: ByteBuffer) throws(FFmpegError) {
        let reference: UnsafeMutablePointer<AVBufferRef>? = bytes.withUnsafeReadableBytesWithStorageManagement { source, storage in
            // While this retains the storage, no holder of the buffer can write to it in place.
            let retained = storage.retain()
            let data = UnsafeMutablePointer(mutating: source.baseAddress?.assumingMemoryBound(to: UInt8.self))
            let reference = av_buffer_create(
                data, source.count + Int(earshot_input_padding),
                { opaque, _ in if let opaque { Unmanaged<AnyObject>.fromOpaque(opaque).release() } },
                retained.toOpaque(), Int32(AV_BUFFER_FLAG_READONLY))
            if reference == nil { retained.release() }
            return reference
        }
        let buffer = try allocated(reference, "av_buffer_create")
        self.pointer.pointee.buf = buffer
        self.pointer.pointee.data = buffer.pointee.data
        self.pointer.pointee.size = Int32(bytes.readableBytes)
    }
}

/// Owns one AVFrame: a picture, or a run of audio samples. Used by one thread at a time.
struct MediaFrame: ~Copyable {
    let pointer: UnsafeMutablePointer<AVFrame>

    init() throws(FFmpegError) { self.pointer = try allocated(av_frame_alloc(), "av_frame_alloc") }

    deinit {
        var pointer: UnsafeMutablePointer<AVFrame>? = self.pointer
        av_frame_free(&pointer)
    }
}
