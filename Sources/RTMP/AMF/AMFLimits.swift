/// What one AMF message may cost its reader. A value, given to a decoder when it is made.
package struct AMFLimits: Sendable, Equatable {
    /// Containers inside one another; AMF3 inside AMF0 counts on.
    package var depth: Int
    /// Entries of one container (object, array, vector, dictionary).
    package var entriesPerContainer: Int
    /// Values of all kinds in one message.
    package var totalValues: Int
    /// Bytes of decoded text in one AMF3 message, where a reference of two bytes can repeat a long string.
    package var stringBytes: Int

    package init(depth: Int = 32, entriesPerContainer: Int = 1024, totalValues: Int = 16384, stringBytes: Int = 256 * 1024) {
        self.depth = depth
        self.entriesPerContainer = entriesPerContainer
        self.totalValues = totalValues
        self.stringBytes = stringBytes
    }
}
