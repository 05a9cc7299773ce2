/// Limits on the values of one AMF message. A plain value, passed to a decoder's initializer.
package struct AMFLimits: Sendable, Equatable {
    /// Nesting depth of containers; AMF3 inside AMF0 continues the count.
    package var depth: Int
    /// Entries of one container (object, array, vector, dictionary).
    package var entriesPerContainer: Int
    /// Values of all kinds in one message.
    package var totalValues: Int
    /// Bytes of decoded text in one AMF3 message. There a two-byte reference can repeat a long string.
    package var stringBytes: Int

    package init(depth: Int = 32, entriesPerContainer: Int = 1024, totalValues: Int = 16384, stringBytes: Int = 256 * 1024) {
        self.depth = depth
        self.entriesPerContainer = entriesPerContainer
        self.totalValues = totalValues
        self.stringBytes = stringBytes
    }
}
