"""Volumes: their sources and projections.

Facts of the Kubernetes 1.36 API; `protobuf.schema` explains the notation.
"""

from typing import Final

MESSAGES: Final = """\
core.AWSElasticBlockStoreVolumeSource: 1 volumeID string!; 2 fsType string; 3 partition int; 4 readOnly bool
core.AzureDiskVolumeSource: 1 diskName string!; 2 diskURI string!; 3 cachingMode string!; 4 fsType string!;
  5 readOnly bool!; 6 kind string!
core.AzureFileVolumeSource: 1 secretName string!; 2 shareName string!; 3 readOnly bool
core.CSIVolumeSource: 1 driver string!; 2 readOnly bool!; 3 fsType string!; 4 volumeAttributes {}string;
  5 nodePublishSecretRef core.LocalObjectReference
core.CephFSVolumeSource: 1 monitors []string; 2 path string; 3 user string; 4 secretFile string;
  5 secretRef core.LocalObjectReference; 6 readOnly bool
core.CinderVolumeSource: 1 volumeID string!; 2 fsType string; 3 readOnly bool; 4 secretRef core.LocalObjectReference
core.ClusterTrustBundleProjection: 1 name string!; 2 signerName string!; 3 labelSelector meta.LabelSelector;
  4 path string!; 5 optional bool!
core.ConfigMapProjection: 1 . core.LocalObjectReference; 2 items []core.KeyToPath; 4 optional bool!
core.ConfigMapVolumeSource: 1 . core.LocalObjectReference; 2 items []core.KeyToPath; 3 defaultMode int!;
  4 optional bool!
core.DownwardAPIProjection: 1 items []core.DownwardAPIVolumeFile
core.DownwardAPIVolumeFile: 1 path string!; 2 fieldRef core.ObjectFieldSelector;
  3 resourceFieldRef core.ResourceFieldSelector; 4 mode int!
core.DownwardAPIVolumeSource: 1 items []core.DownwardAPIVolumeFile; 2 defaultMode int!
core.EmptyDirVolumeSource: 1 medium string; 2 sizeLimit quantity
core.EphemeralVolumeSource: 1 volumeClaimTemplate core.PersistentVolumeClaimTemplate
core.FCVolumeSource: 1 targetWWNs []string; 2 lun int!; 3 fsType string; 4 readOnly bool; 5 wwids []string
core.FlexVolumeSource: 1 driver string!; 2 fsType string; 3 secretRef core.LocalObjectReference; 4 readOnly bool;
  5 options {}string
core.FlockerVolumeSource: 1 datasetName string; 2 datasetUUID string
core.GCEPersistentDiskVolumeSource: 1 pdName string!; 2 fsType string; 3 partition int; 4 readOnly bool
core.GitRepoVolumeSource: 1 repository string!; 2 revision string; 3 directory string
core.GlusterfsVolumeSource: 1 endpoints string!; 2 path string!; 3 readOnly bool
core.HostPathVolumeSource: 1 path string!; 2 type string!
core.ISCSIVolumeSource: 1 targetPortal string!; 2 iqn string!; 3 lun int!; 4 iscsiInterface string; 5 fsType string;
  6 readOnly bool; 7 portals []string; 8 chapAuthDiscovery bool; 10 secretRef core.LocalObjectReference;
  11 chapAuthSession bool; 12 initiatorName string!
core.ImageVolumeSource: 1 reference string; 2 pullPolicy string
core.KeyToPath: 1 key string!; 2 path string!; 3 mode int!
core.LocalObjectReference: 1 name string
core.NFSVolumeSource: 1 server string!; 2 path string!; 3 readOnly bool
core.ObjectFieldSelector: 1 apiVersion string; 2 fieldPath string!
core.PersistentVolumeClaimSpec: 1 accessModes []string; 2 resources core.VolumeResourceRequirements;
  3 volumeName string; 4 selector meta.LabelSelector; 5 storageClassName string!; 6 volumeMode string!;
  7 dataSource core.TypedLocalObjectReference; 8 dataSourceRef core.TypedObjectReference;
  9 volumeAttributesClassName string!
core.PersistentVolumeClaimTemplate: 1 metadata meta.ObjectMeta; 2 spec core.PersistentVolumeClaimSpec
core.PersistentVolumeClaimVolumeSource: 1 claimName string!; 2 readOnly bool
core.PhotonPersistentDiskVolumeSource: 1 pdID string!; 2 fsType string
core.PodCertificateProjection: 1 signerName string; 2 keyType string; 3 maxExpirationSeconds int!;
  4 credentialBundlePath string; 5 keyPath string; 6 certificateChainPath string; 7 userAnnotations {}string
core.PortworxVolumeSource: 1 volumeID string!; 2 fsType string; 3 readOnly bool
core.ProjectedVolumeSource: 1 sources []core.VolumeProjection; 2 defaultMode int!
core.QuobyteVolumeSource: 1 registry string!; 2 volume string!; 3 readOnly bool; 4 user string; 5 group string;
  6 tenant string
core.RBDVolumeSource: 1 monitors []string; 2 image string!; 3 fsType string; 4 pool string; 5 user string;
  6 keyring string; 7 secretRef core.LocalObjectReference; 8 readOnly bool
core.ResourceFieldSelector: 1 containerName string; 2 resource string!; 3 divisor quantity
core.ScaleIOVolumeSource: 1 gateway string!; 2 system string!; 3 secretRef core.LocalObjectReference;
  4 sslEnabled bool; 5 protectionDomain string; 6 storagePool string; 7 storageMode string; 8 volumeName string;
  9 fsType string; 10 readOnly bool
core.SecretProjection: 1 . core.LocalObjectReference; 2 items []core.KeyToPath; 4 optional bool!
core.SecretVolumeSource: 1 secretName string; 2 items []core.KeyToPath; 3 defaultMode int!; 4 optional bool!
core.ServiceAccountTokenProjection: 1 audience string; 2 expirationSeconds int!; 3 path string!
core.StorageOSVolumeSource: 1 volumeName string; 2 volumeNamespace string; 3 fsType string; 4 readOnly bool;
  5 secretRef core.LocalObjectReference
core.TypedLocalObjectReference: 1 apiGroup string!; 2 kind string!; 3 name string!
core.TypedObjectReference: 1 apiGroup string!; 2 kind string!; 3 name string!; 4 namespace string!
core.Volume: 1 name string!; 2 . core.VolumeSource
core.VolumeProjection: 1 secret core.SecretProjection; 2 downwardAPI core.DownwardAPIProjection;
  3 configMap core.ConfigMapProjection; 4 serviceAccountToken core.ServiceAccountTokenProjection;
  5 clusterTrustBundle core.ClusterTrustBundleProjection; 6 podCertificate core.PodCertificateProjection
core.VolumeResourceRequirements: 1 limits {}quantity; 2 requests {}quantity
core.VolumeSource: 1 hostPath core.HostPathVolumeSource; 2 emptyDir core.EmptyDirVolumeSource;
  3 gcePersistentDisk core.GCEPersistentDiskVolumeSource;
  4 awsElasticBlockStore core.AWSElasticBlockStoreVolumeSource; 5 gitRepo core.GitRepoVolumeSource;
  6 secret core.SecretVolumeSource; 7 nfs core.NFSVolumeSource; 8 iscsi core.ISCSIVolumeSource;
  9 glusterfs core.GlusterfsVolumeSource; 10 persistentVolumeClaim core.PersistentVolumeClaimVolumeSource;
  11 rbd core.RBDVolumeSource; 12 flexVolume core.FlexVolumeSource; 13 cinder core.CinderVolumeSource;
  14 cephfs core.CephFSVolumeSource; 15 flocker core.FlockerVolumeSource; 16 downwardAPI core.DownwardAPIVolumeSource;
  17 fc core.FCVolumeSource; 18 azureFile core.AzureFileVolumeSource; 19 configMap core.ConfigMapVolumeSource;
  20 vsphereVolume core.VsphereVirtualDiskVolumeSource; 21 quobyte core.QuobyteVolumeSource;
  22 azureDisk core.AzureDiskVolumeSource; 23 photonPersistentDisk core.PhotonPersistentDiskVolumeSource;
  24 portworxVolume core.PortworxVolumeSource; 25 scaleIO core.ScaleIOVolumeSource;
  26 projected core.ProjectedVolumeSource; 27 storageos core.StorageOSVolumeSource; 28 csi core.CSIVolumeSource;
  29 ephemeral core.EphemeralVolumeSource; 30 image core.ImageVolumeSource
core.VsphereVirtualDiskVolumeSource: 1 volumePath string!; 2 fsType string; 3 storagePolicyName string;
  4 storagePolicyID string
"""
