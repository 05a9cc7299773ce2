internal import CLibRTMP
import LibC
internal import NIOCore
internal import RTMP

/// Owns librtmp's state for one connection and the C strings it points to. On the link's thread only.
///
/// librtmp gets a connected socket and whole chunks, never a URL and never a message to act on. It does the handshake, sends `connect`,
/// and converts messages to chunks and back. Its connecting, TLS, URL options and command handling stay unused (no IPv6, no checks of
/// addresses and certificates, options split at spaces, memory errors on messages that a server may send).
struct LibRTMP: ~Copyable {
    private let state: UnsafeMutablePointer<CLibRTMP.RTMP>
    /// C strings that librtmp points into for its whole life.
    private let texts: [UnsafeMutablePointer<CChar>]
    /// A packet, with room before it for the chunk headers that librtmp writes while sending.
    private var scratch: UnsafeMutableRawBufferPointer

    /// Chunk streams as other clients use them (RTMP 1.0 §5.3.1.1 leaves 3 and up to us; 2 is for control messages).
    private enum ChunkStream {
        static let control: Int32 = 2
        static let command: Int32 = 3
        static let audio: Int32 = 4
        static let video: Int32 = 6
        static let data: Int32 = 8
    }

    /// Bytes that librtmp may write before a packet's body; RTMP_MAX_HEADER_SIZE.
    private static let headroom = 18

    deinit {
        RTMP_Close(self.state)
        RTMP_Free(self.state)
        for text in self.texts { free(text) }
        self.scratch.deallocate()
    }

    private init(_ state: UnsafeMutablePointer<CLibRTMP.RTMP>, _ texts: [UnsafeMutablePointer<CChar>]) {
        self.state = state
        self.texts = texts
        self.scratch = .allocate(byteCount: 64 << 10, alignment: 16)
    }

    /// Makes librtmp's state. librtmp owns `descriptor` from here on and closes it.
    static func make(_ descriptor: Int32, url: LinkURL, publishes: Bool, timeoutMs: Int) throws(LinkError) -> LibRTMP {
        Self.prepare
        let texts = [url.hostText, url.stream, url.tcUrl, url.app].compactMap { (text: String) in strdup(text) }
        guard let state = RTMP_Alloc(), texts.count == 4 else {
            System.close(descriptor)
            for text in texts { free(text) }
            throw .system("no memory")
        }
        RTMP_Init(state)
        earshot_rtmp_set_socket(state, descriptor)
        var values = texts.map { earshot_aval($0) }
        var none = AVal()
        values.withUnsafeMutableBufferPointer { values in
            guard let first = values.baseAddress else { return }
            // Always librtmp's plain protocol: TLS runs below it.
            RTMP_SetupStream(
                state, RTMP_PROTOCOL_RTMP, first, UInt32(url.port), &none, first + 1, first + 2, nil, nil, first + 3, nil, nil, 0, nil, nil,
                nil, 0, 0, 1, timeoutMs / 1_000)
        }
        if publishes { RTMP_EnableWrite(state) }
        return LibRTMP(state, texts)
    }

    /// Prepares librtmp once: its first connection sets up TLS without a lock. Also installs the log handler.
    private static let prepare: Void = {
        LibRTMPLog.install()
        guard let first = RTMP_Alloc() else { return }
        RTMP_Init(first)
        RTMP_Free(first)
    }()

    /// Does the handshake (RTMP 1.0 §5.2), then sends `connect`. Blocks. Returns false when that failed and the socket is closed.
    mutating func connect(_ command: Message) -> Bool {
        var packet = self.packet(command)
        return RTMP_Connect1(self.state, &packet) != 0
    }

    /// Whether librtmp's own last wait timed out.
    var timedOut: Bool { earshot_rtmp_timed_out(self.state) != 0 }

    /// Takes the bytes that librtmp read from the socket beyond the handshake.
    mutating func popUnread() -> ByteBuffer {
        var buffer = ByteBuffer()
        let count = earshot_rtmp_unread(self.state)
        if count > 0, let start = earshot_rtmp_unread_start(self.state) {
            buffer.writeBytes(UnsafeRawBufferPointer(start: start, count: Int(count)))
        }
        earshot_rtmp_unfeed(self.state)
        return buffer
    }

    /// Feeds librtmp one whole chunk, `length` bytes at the buffer's reader index. Returns the message if that completes one. Does not
    /// touch the socket.
    mutating func read(_ length: Int, of buffer: ByteBuffer) throws(LinkError) -> Message? {
        var packet = RTMPPacket()
        let state = self.state
        let result = buffer.withUnsafeReadableBytes { bytes in
            earshot_rtmp_feed(state, bytes.baseAddress, Int32(length))
            let result = RTMP_ReadPacket(state, &packet)
            let left = earshot_rtmp_unread(state)
            earshot_rtmp_unfeed(state)
            return result != 0 && left == 0
        }
        // librtmp keeps an unfinished body.
        guard result else { throw .protocolViolation("a chunk that librtmp cannot read") }
        guard packet.m_nBytesRead == packet.m_nBodySize else { return nil }
        defer { RTMPPacket_Free(&packet) }
        var payload = ByteBuffer()
        if let body = packet.m_body, packet.m_nBodySize > 0 {
            payload = ByteBuffer(bytes: UnsafeRawBufferPointer(start: body, count: Int(packet.m_nBodySize)))
        }
        return Message(
            type: MessageType(rawValue: packet.m_packetType), streamID: UInt32(bitPattern: packet.m_nInfoField2),
            timestamp: packet.m_nTimeStamp, payload: payload)
    }

    /// Sets the payload bytes of the server's chunks.
    mutating func setReadChunkSize(_ size: Int) { self.state.pointee.m_inChunkSize = Int32(clamping: size) }

    /// Sets the payload bytes of our chunks.
    mutating func setWriteChunkSize(_ size: Int) { self.state.pointee.m_outChunkSize = Int32(clamping: size) }

    /// Blocks until the system has accepted the whole message. Returns false when that failed and the socket is closed.
    mutating func send(_ message: Message) -> Bool {
        var packet = self.packet(message)
        return RTMP_SendPacket(self.state, &packet, 0) != 0
    }

    /// Copies the message: librtmp writes its chunk headers into the body while sending.
    private mutating func packet(_ message: Message) -> RTMPPacket {
        let count = message.payload.readableBytes
        if self.scratch.count < count + Self.headroom {
            self.scratch.deallocate()
            self.scratch = .allocate(byteCount: count + Self.headroom, alignment: 16)
        }
        let body = UnsafeMutableRawBufferPointer(rebasing: self.scratch[Self.headroom..<(Self.headroom + count)])
        message.payload.withUnsafeReadableBytes { body.copyMemory(from: $0) }
        var packet = RTMPPacket()
        // Always a full header. librtmp omits a repeated timestamp, but by the standard that repeats the last difference.
        packet.m_headerType = UInt8(RTMP_PACKET_SIZE_LARGE)
        packet.m_packetType = message.type.rawValue
        packet.m_hasAbsTimestamp = 1
        packet.m_nTimeStamp = message.timestamp
        packet.m_nInfoField2 = Int32(bitPattern: message.streamID)
        packet.m_nBodySize = UInt32(count)
        packet.m_body = body.baseAddress?.assumingMemoryBound(to: CChar.self)
        switch message.type {
        case .audio: packet.m_nChannel = ChunkStream.audio
        case .video: packet.m_nChannel = ChunkStream.video
        case .dataAMF0, .dataAMF3: packet.m_nChannel = ChunkStream.data
        case .commandAMF0, .commandAMF3: packet.m_nChannel = ChunkStream.command
        default: packet.m_nChannel = ChunkStream.control
        }
        return packet
    }
}
