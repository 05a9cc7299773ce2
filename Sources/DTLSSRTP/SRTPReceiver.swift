/// Opens what a peer sends: checks, decrypts, and refuses what came before (RFC 3711 §3.3, §3.4). Used by one thread at a time.
package final class SRTPReceiver {
    private let profile: SRTPProfile
    private let media: SRTPCipher
    private let control: SRTPCipher
    private var sources: [UInt32: Source] = [:]
    private var controlSources: [UInt32: ReplayWindow] = [:]

    /// Synchronization sources of one peer: two tracks, each with layers and repeats.
    private static let mostSources = 32
    static let controlHeader = 8
    /// The flag of an encrypted RTCP packet, before its index.
    static let encrypted: UInt32 = 1 << 31

    private struct Source {
        /// The highest index that was right.
        var highest: UInt64
        var window = ReplayWindow()
    }

    package init(_ keys: SRTPKeys) throws(DTLSError) {
        self.profile = keys.profile
        self.media = try SRTPCipher(keys.profile, SessionKeys(keys.profile, keys.peer, isControl: false), encrypts: false)
        self.control = try SRTPCipher(keys.profile, SessionKeys(keys.profile, keys.peer, isControl: true), encrypts: false)
    }

    /// Returns the clear compound packet; nil if it is not the peer's, or came before.
    package func openControl(_ packet: UnsafeRawBufferPointer) -> [UInt8]? {
        let overhead = self.profile.controlOverhead
        guard packet.count >= Self.controlHeader + overhead else { return nil }
        // GCM has the word with the index behind the tag (RFC 7714 §9.3), HMAC before it.
        let at = self.profile == .aeadAES128GCM ? packet.count - 4 : packet.count - SRTPCipher.shortTag - 4
        let word = packet.loadUnaligned(fromByteOffset: at, as: UInt32.self).bigEndian
        guard word & Self.encrypted != 0 else { return nil }
        let index = UInt64(word & ~Self.encrypted)
        let ssrc = packet.loadUnaligned(fromByteOffset: 4, as: UInt32.self).bigEndian
        var window = self.controlSources[ssrc] ?? ReplayWindow()
        guard window.accepts(index), self.controlSources[ssrc] != nil || self.controlSources.count < Self.mostSources else { return nil }
        var clear = [UInt8](packet)
        let count = clear.withUnsafeMutableBytes {
            self.control.open($0, header: Self.controlHeader, ssrc: ssrc, index: index, trailer: word)
        }
        guard let count else { return nil }
        window.note(index)
        self.controlSources[ssrc] = window
        return Array(clear.prefix(count))
    }

    /// Returns the clear packet and its index, roll-overs counted; nil if it is not the peer's, or came before. `header`: bytes of the RTP header with
    /// its extension.
    package func open(_ packet: UnsafeRawBufferPointer, header: Int) -> (packet: [UInt8], index: UInt64)? {
        guard header >= 12, packet.count >= header + self.profile.overhead else { return nil }
        let sequence = packet.loadUnaligned(fromByteOffset: 2, as: UInt16.self).bigEndian
        let ssrc = packet.loadUnaligned(fromByteOffset: 8, as: UInt32.self).bigEndian
        let source = self.sources[ssrc]
        guard source != nil || self.sources.count < Self.mostSources else { return nil }
        let index = source.map { Self.index(of: sequence, near: $0.highest) } ?? UInt64(sequence)
        guard source?.window.accepts(index) ?? true else { return nil }
        var clear = [UInt8](packet)
        guard let count = clear.withUnsafeMutableBytes({ self.media.open($0, header: header, ssrc: ssrc, index: index) }) else {
            return nil
        }
        var opened = source ?? Source(highest: index)
        opened.window.note(index)
        opened.highest = max(opened.highest, index)
        self.sources[ssrc] = opened
        return (Array(clear.prefix(count)), index)
    }

    /// RFC 3711 §3.3.1: the index with this sequence number that is nearest to the highest so far.
    package static func index(of sequence: UInt16, near highest: UInt64) -> UInt64 {
        let difference = Int16(truncatingIfNeeded: Int(sequence) - Int(highest & 0xFFFF))
        let index = Int64(highest) + Int64(difference)
        return index < 0 ? UInt64(sequence) : UInt64(index)
    }
}

/// The indices that came, up to 1,024 below the highest (RFC 3711 §3.3.2): a picture's packets may all come before one that is repeated. A value.
struct ReplayWindow {
    private var highest: UInt64?
    /// A bit for each index, at its place modulo the window's size.
    private var seen = [UInt64](repeating: 0, count: ReplayWindow.words)

    private static let words = 16
    static let size = UInt64(64 * ReplayWindow.words)

    func accepts(_ index: UInt64) -> Bool {
        guard let highest = self.highest, index <= highest else { return true }
        return highest - index < Self.size && !self.has(index)
    }

    mutating func note(_ index: UInt64) {
        if let highest = self.highest {
            if index > highest {
                if index - highest >= Self.size {
                    for word in self.seen.indices { self.seen[word] = 0 }
                } else {
                    for between in (highest + 1)...index { self.set(between, false) }
                }
                self.highest = index
            } else if highest - index >= Self.size {
                return
            }
        } else {
            self.highest = index
        }
        self.set(index, true)
    }

    private func has(_ index: UInt64) -> Bool { self.seen[Int(index / 64) % Self.words] & 1 << (index % 64) != 0 }

    private mutating func set(_ index: UInt64, _ value: Bool) {
        let word = Int(index / 64) % Self.words
        if value { self.seen[word] |= 1 << (index % 64) } else { self.seen[word] &= ~(1 << (index % 64)) }
    }
}
