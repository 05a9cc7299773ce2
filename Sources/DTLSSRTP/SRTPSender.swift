/// Protects what goes to one peer: RTP of any number of synchronization sources, and RTCP (RFC 3711 §3.3, §3.4). Used by one thread at a time.
///
/// The owner counts packets: an index is 2¹⁶ × the roll-over counter plus the sequence number. A packet may be protected again under its own index
/// if all its bytes are the same, as when it is sent anew.
package final class SRTPSender {
    package let profile: SRTPProfile
    private let media: SRTPCipher
    private let control: SRTPCipher
    /// The next index of RTCP, 31 bits.
    private var controlIndex: UInt32 = 0

    package init(_ keys: SRTPKeys) throws(DTLSError) {
        self.profile = keys.profile
        self.media = try SRTPCipher(keys.profile, SessionKeys(keys.profile, keys.own, isControl: false), encrypts: true)
        self.control = try SRTPCipher(keys.profile, SessionKeys(keys.profile, keys.own, isControl: true), encrypts: true)
    }

    /// Protects a packet whose clear header, of `header` bytes, is at the start of `output`. Returns its length; 0 if there is no room.
    package func protect(
        header: Int, payload: UnsafeRawBufferPointer, ssrc: UInt32, index: UInt64, into output: UnsafeMutableRawBufferPointer
    ) -> Int {
        self.media.seal(header: header, payload: payload, ssrc: ssrc, index: index, into: output)
    }

    /// Protects a compound RTCP packet, of which the first eight bytes stay clear.
    package func protectControl(_ packet: [UInt8]) -> [UInt8]? {
        guard packet.count >= SRTPReceiver.controlHeader, self.controlIndex < 1 << 31 else { return nil }
        let index = self.controlIndex
        self.controlIndex += 1
        var output = [UInt8](repeating: 0, count: packet.count + self.profile.controlOverhead)
        let count = output.withUnsafeMutableBytes { output in
            packet.withUnsafeBytes { packet in
                let header = SRTPReceiver.controlHeader
                output.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet[..<header]))
                return self.control.seal(
                    header: header, payload: UnsafeRawBufferPointer(rebasing: packet[header...]),
                    ssrc: packet.loadUnaligned(fromByteOffset: 4, as: UInt32.self).bigEndian, index: UInt64(index),
                    trailer: SRTPReceiver.encrypted | index, into: output)
            }
        }
        return count == output.count ? output : nil
    }
}
