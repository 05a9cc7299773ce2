package import Foundation

/// Files of raw 32-bit samples, as ffmpeg's `f32le` writes them.
package enum RawSamples {
    package static func read(_ url: URL) throws -> [Float] {
        try Data(contentsOf: url).withUnsafeBytes { bytes in
            (0..<bytes.count / 4).map { bytes.loadUnaligned(fromByteOffset: $0 * 4, as: Float.self) }
        }
    }
}
