"""The silicon vendors' roots, pinned by the SHA-256 of the certificate.

Certificates come from the evidence, from a directory or from the vendor's service, and none of these is trusted: a chain counts
only when it ends in a certificate with one of these fingerprints. Changing a line here changes whom every cluster believes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# ARK certificates of AMD's key distribution service, one per generation.
AMD_ROOTS: Final[Mapping[str, str]] = {
    "Milan": "69d063b45344d26a2e94e1f4210de49ef555308287d4c174445c95639a540bcd",
    "Genoa": "4c6598d19c18719c5dfd4a7d335f674e5bfe1d8f800cea2cf270c10d103db2f1",
    "Turin": "1f084161a44bb6d93778a904877d4819cafa5d05ef4193b2ded9dd9c73dd3f6a",
}

# Intel SGX Root CA: signs PCK certificates, TCB information and enclave identities, for SGX and TDX alike.
# By the whole certificate and not by its key: a certificate with other dates or constraints over the same key is another root.
INTEL_ROOT: Final = "44a0196b2b99f889b8e149e95b807a350e7424964399e885a7cbb8ccfab674d3"

# Makers of TPMs: roots, and intermediates whose root is not published in a sound form. Infineon signed its older ones with SHA-1,
# on which a pin does not rest. Nuvoton's are absent: their names break DER, so no certificate below them can be read.
TPM_ROOTS: Final[Mapping[str, str]] = {
    "Aliyun TPM EKMF CA": "141805f04cd9b89bfbcd30cb792d5ca3a0a2382db6ee35720e6e27e4189e43a0",
    "GlobalSign Trusted Platform Module Root CA": "f27bf02c6e00c73d915eeb6a6a2f5fbf0c31ae0393149e6b5c31e41b113841c3",
    "IFX TPM EK Intermediate CA 01": "10ef22859b0a98121129aa0c4647a91fd412a5a79f1c628db3bfea4278d49abf",
    "IFX TPM EK Intermediate CA 02": "b33027e90f3f47bb5c0c54b18451121af0211a568eca51b68927280707b42f0e",
    "IFX TPM EK Intermediate CA 03": "2b2ab3993b854e496569fd1f187a383617eec1574bef0fa8c34bc013da40935f",
    "IFX TPM EK Intermediate CA 04": "c2b50c0544fbfae3f8257410818bd2228759c04150989982c1b42c397abf00a8",
    "IFX TPM EK Intermediate CA 05": "ed80849cf19acd6df5895ab47c6ec91555a3081b4696b900f8e346e777177aed",
    "IFX TPM EK Intermediate CA 08": "608dd48ff87759f404917c7471ec8cbe7ad972c1699d810f0e1a70fb2b02573f",
    "IFX TPM EK Intermediate CA 15": "8a3e7db4445c4a795fb9e524db3ed2edf96f8423723f16ff5f71ca6b84a3e88c",
    "IFX TPM EK Intermediate CA 17": "cb1a77acd98db771d35b1977eb82485f0e0f64f6deb0577a97330b5b532eb7ed",
    "IFX TPM EK Intermediate CA 18": "9cd83ef4897819d545d3cccccf33ba7947e34439a93c5d45a3f136303e1c248e",
    "IFX TPM EK Intermediate CA 20": "73a42ded6eab007af264a51c5a3956092cdbf5a6d209303a4e0d57416d762067",
    "IFX TPM EK Intermediate CA 21": "014df370f125f4bc18c9fc4b41c17ec2311e8514fc9b622f5a633c10287c1ebd",
    "IFX TPM EK Root CA": "7df2c3751c03ce003e99174d9cb2559f57a1b05b1920dd30bb6f8dfcf17f5e62",
    "Infineon OPTIGA ECC Manufacturing CA 010": "aa6a2b54bfbf090b6a2a7abbe494a2b6b47520e1c2ed7807ba54efc99cbdb5c9",
    "Infineon OPTIGA ECC Manufacturing CA 011": "b559a84e6332a7b4e32b4d3739e372e3c517ba5a4ccffee1daaf80bc641628ee",
    "Infineon OPTIGA ECC Manufacturing CA 034": "504ff6a327a67e1025b1efdf1bce71ec5f38a4be68256def40bbdec2cce052f1",
    "Infineon OPTIGA ECC Root CA": "cfeb02fecd55ad7a73c6e1d11985d4c47dee248ab63dcb66091a2489660443c3",
    "Infineon OPTIGA RSA Manufacturing CA 010": "0fef986eb5e34a2df81420707c2452abdfe386a3038f23d7568fbcc3cf54bac6",
    "Infineon OPTIGA RSA Manufacturing CA 011": "a83379f92a341beb61b67f03506644940feb4b85ea504a9d2213bca52c889f89",
    "Infineon OPTIGA RSA Manufacturing CA 022": "d3c4ec52ed9289842c4f4e1e31fb23c4b03cc91163f9f3748b8a706d81113bed",
    "Infineon OPTIGA RSA Manufacturing CA 034": "f251134a62f1862992855707c4b3fe5155d47691228fc2a3477014cc30c0d888",
    "Infineon OPTIGA RSA Root CA": "899e35474c9807eb4c7f2f7a12da0028fb250cd02154d0009fca7d9c66574f3b",
    "Infineon OPTIGA TPM 2.0 ECC CA 042": "b0756a2cd3d1fda524409d7de5c064405b3c3e8792f8358435292ab2e7248543",
    "Infineon OPTIGA TPM 2.0 RSA CA 042": "b51df89142eac690cc57555da0e534a16378b302e0bad3edf0631a328b14ae98",
    "Intel TPM EK intermediate for SPTH_EPID_PROD": "e365738ed9d49110756b9fc3a72aae91e473db0f8c0aa4f3691f035c381480d7",
    "Intel TPM EK root cert signing": "2e1b3ba79af56d758be51697621bc4b9e8cee0983db3e749c55eb9b37c6d2ae0",
    "Nationz TPM Manufacturing CA 001": "44afc4b65d4f617143cf3085637e88e6ecc7710f9594b37f65a3dea82d300ba3",
    "STM TPM ECC Intermediate CA 01": "015bcfc3943540d18691bf95c939b0e560b293a835b1c32ff1dced975376ac42",
    "STM TPM ECC Root CA 01": "c541d7e5b9e3f935621acbd403896225ec641036c9ae3b5f7ac793a606ff9b79",
    "STM TPM EK Intermediate CA 01": "6c3ba9f3ce8f095179e42b015fa1e81cf6e260e140fc5ffcb0dd418da5acafd7",
    "STM TPM EK Intermediate CA 02": "dc62a3b996414573df20bcaf013f0aae47b102e599f63b23c9bf0b6448a60b53",
    "STM TPM EK Intermediate CA 03": "6b26c20162a9de2d0f69dbc8c04b95c127f5ca5b153d7a01a7a6cf9ab88ad834",
    "STM TPM EK Intermediate CA 04": "25e87e5f9d8215e78b1a916d5d529b5ad9b3bfb52dbbf2d8c3ab211f6124caca",
    "STM TPM EK Intermediate CA 05": "870fc181411d24c81e84ec45cd9bcc87b41253342ed688eee6d9139b31b44002",
    "STM TPM EK Intermediate CA 06": "9343d2d7f3c8708526e6f224563bebda23f534c518f2a1a421ebcce01557247c",
    "STM TPM EK Intermediate CA 07": "19bbcef93fc0877ae66eba97ade4e15c3d77054f39cd1183486f12b8fa5c42b2",
    "STM TPM EK Root CA": "f8e37a86b689a20a6cc0c40cc3f81fb130fa9f44ce7ffa60d62590aaf87273a9",
}
